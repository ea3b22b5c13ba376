/*
 * cli/option.h - the table of options, and what can be said about it.
 *
 * The table is cli/options.def. What values the options have is cli/config.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

struct option_row {
	const char *name;     /* without the dashes */
	const char *argument; /* NULL: takes none */
	const char *standard; /* the default; NULL: none */
	const char *help;
	int64_t min, max;
	enum option_type type;
	enum option_scope scope;
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

/* The command's options as --help shows them, in 80 columns. */
void option_help(struct evbuffer *, enum command_id);
