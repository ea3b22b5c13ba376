/*
 * cli/option.h - the table of options, and what can be said about it.
 *
 * The table is cli/options.def. Their values are in cli/config.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/command.h"

struct evbuffer;

enum option_id {
#define GROUP(heading)
#define OPTION(field, ...) OPTION_##field,
#include "cli/options.def"
#undef OPTION
#undef GROUP
	OPTION_COUNT
};

enum option_type {
	OPTION_IS_TEXT,
	OPTION_IS_NAME,
	OPTION_IS_LIST,
	OPTION_IS_PHRASES,
	OPTION_IS_COUNT,
	OPTION_IS_NUMBER,
	OPTION_IS_DURATION,
	OPTION_IS_MONEY,
	OPTION_IS_SIZE,
	OPTION_IS_SWITCH,
	OPTION_IS_TALLY,
	OPTION_IS_CHOICE,
};

enum option_scope { OPTION_ONCE, OPTION_SETTING };
enum option_shown { OPTION_RARE, OPTION_OFTEN };

struct option_row {
	const char *name;     /* without the dashes */
	const char *argument; /* NULL: takes none */
	const char *standard; /* the default; NULL: none */
	const char *help;
	int64_t min, max;
	enum option_type type;
	enum option_scope scope;
	enum option_shown shown;
	unsigned commands; /* a bit of each that has it, 1u << COMMAND_... */
	char letter;       /* 0: none */
};

extern const struct option_row option_table[OPTION_COUNT];

/* Whether the command has the option. In all of these COMMAND_ANY has every option. */
bool option_is_of(enum option_id, enum command_id);

/* The command's option of that name, or OPTION_COUNT. */
enum option_id option_find(enum command_id, const char *name);

/* The name among `names` that is most like `name`, or NULL where none is near; lent. */
const char *option_nearest(const char *name, const char *const *names, size_t count);
const char *option_nearest_name(enum command_id, const char *name);

/* Whether a name or letter that is no option's, though one may begin like it, is known to mean
 * another one; the error says how that is given. */
bool option_misnamed(enum command_id, const char *name, struct rlmd_error *);

/* An option that is none any more. For one version it is still understood, with a warning. */
struct option_former {
	const char *name;
	enum option_id now;  /* the command has it */
	const char *value;   /* of that; NULL: the one that is given */
	const char *instead; /* as it is to be written */
};

/* The next one of the command, from `*at` on, which is moved behind it; NULL: there is none. */
const struct option_former *option_former(enum command_id, size_t *at);

/* Of any type, before it is known whether it counts. */
union option_value {
	const char *text; /* lent by the string that was read */
	int64_t number;
	double real;
	bool on;
};

/* RLMD_ERROR_USAGE says what the option takes instead. */
bool option_value_read(const struct option_row *, const char *string, union option_value *ret,
		       struct rlmd_error *);

/* The command's options as --help shows them, in 80 columns; those that are rarely used, too, where
 * `all` are wanted, or there are few. */
void option_help(struct evbuffer *, enum command_id, bool all);
