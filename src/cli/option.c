#include "cli/option.h"

#include <event2/buffer.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"

enum {
	HELP_WIDTH = 80,
	HELP_COLUMN = 30,
	NAME_MAX_LENGTH = 32, /* longer words are like no name */
};

enum { /* the words of the table's column */
#define COMMAND(name, id, ...) id = 1 << COMMAND_##id,
#include "cli/commands.def"
#undef COMMAND
       ALL = (1 << COMMAND_COUNT) - 1,
};

const struct option_row option_table[OPTION_COUNT] = {
#define GROUP(heading)
#define OPTION(field, kind, where, whose, short_name, long_name, takes, otherwise, low, high,      \
	       text)                                                                               \
	[OPTION_##field] = {.name = long_name,                                                     \
			    .argument = takes,                                                     \
			    .standard = otherwise,                                                 \
			    .help = text,                                                          \
			    .min = low,                                                            \
			    .max = high,                                                           \
			    .type = OPTION_IS_##kind,                                              \
			    .scope = OPTION_##where,                                               \
			    .commands = whose,                                                     \
			    .letter = short_name},
#include "cli/options.def"
#undef OPTION
#undef GROUP
};

bool option_is_of(enum option_id id, enum command_id command)
{
	return command == COMMAND_ANY || (option_table[id].commands & 1u << command);
}

enum option_id option_find(enum command_id command, const char *name)
{
	enum option_id id = 0;

	while (id < OPTION_COUNT &&
	       (!option_is_of(id, command) || strcmp(option_table[id].name, name)))
		id++;
	return id;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* How many letters must be put in, taken out or changed (Levenshtein). */
static size_t distance(const char *a, const char *b)
{
	size_t row[NAME_MAX_LENGTH + 1];
	size_t width = strlen(b);

	for (size_t j = 0; j <= width; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= width; j++) {
			size_t changed = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			row[j] = smaller(changed, smaller(row[j], row[j - 1]) + 1);
		}
	}
	return row[width];
}

const char *option_nearest(const char *name, const char *const *names, size_t count)
{
	size_t length = strlen(name);
	size_t least = length / 3 + 1;
	const char *nearest = NULL;

	if (length > NAME_MAX_LENGTH)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t far = distance(name, names[i]);

		if (far <= least && (far < least || !nearest)) {
			least = far;
			nearest = names[i];
		}
	}
	return nearest;
}

const char *option_nearest_name(enum command_id command, const char *name)
{
	const char *names[OPTION_COUNT];
	size_t count = 0;

	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (option_is_of((enum option_id)i, command))
			names[count++] = option_table[i].name;
	return option_nearest(name, names, count);
}

/* Words from `column` on, broken before the last one that would not fit. */
static void add_words(struct evbuffer *out, const char *text, size_t column)
{
	size_t at = column;

	while (*text) {
		size_t size = strcspn(text, " ");

		if (at > column && at + 1 + size > HELP_WIDTH) {
			evbuffer_add_printf(out, "\n%*s", (int)column, "");
			at = column;
		}
		if (at > column) {
			evbuffer_add(out, " ", 1);
			at++;
		}
		evbuffer_add(out, text, size);
		at += size;
		text += size;
		text += strspn(text, " ");
	}
	evbuffer_add(out, "\n", 1);
}

static void add_option(struct evbuffer *out, const struct option_row *row)
{
	auto_free char *left = xasprintf("  %c%c%s --%s%s%s", row->letter ? '-' : ' ',
					 row->letter ? row->letter : ' ', row->letter ? "," : " ",
					 row->name, row->argument ? " " : "",
					 row->argument ? row->argument : "");
	auto_free char *right = row->standard
					? xasprintf("%s (default: %s)", row->help, row->standard)
					: xstrdup(row->help);

	evbuffer_add_printf(out, "%-*s", HELP_COLUMN, left);
	if (strlen(left) + 2 > HELP_COLUMN)
		evbuffer_add_printf(out, "\n%*s", HELP_COLUMN, "");
	add_words(out, right, HELP_COLUMN);
}

void option_help(struct evbuffer *out, enum command_id command)
{
	const char *heading = NULL;

/* A group none of whose options is shown has no heading. */
#define GROUP(name) heading = name;
#define OPTION(field, ...)                                                                         \
	if (option_is_of(OPTION_##field, command)) {                                               \
		if (heading)                                                                       \
			evbuffer_add_printf(out, "\n%s:\n", heading);                              \
		heading = NULL;                                                                    \
		add_option(out, &option_table[OPTION_##field]);                                    \
	}
#include "cli/options.def"
#undef OPTION
#undef GROUP
}
