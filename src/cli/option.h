/*
 * cli/option.h - the table of options, and what can be said about it.
 *
 * The table is cli/options.def. What values the options have is cli/config.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	char letter; /* 0: none */
};

extern const struct option_row option_table[OPTION_COUNT];

/* The option of that name, or OPTION_COUNT. */
enum option_id option_find(const char *name);

/* The name among `names` that is most like `name`, or NULL where none is near; lent. */
const char *option_nearest(const char *name, const char *const *names, size_t count);
const char *option_nearest_name(const char *name);

/* The table as --help shows it, in 80 columns, without the `foreign` ones. */
void option_help(struct evbuffer *, const enum option_id *foreign, size_t foreign_count);

/* Whether it is one of these. */
bool option_is_in(enum option_id, const enum option_id *ids, size_t count);
