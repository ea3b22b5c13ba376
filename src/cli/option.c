#include "cli/option.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/money.h"
#include "base/number.h"
#include "base/text.h"

enum {
	HOUR_MS = 3600000,
	HELP_WIDTH = 80,
	HELP_COLUMN = 30,
	HELP_OPTIONS = 20,    /* so many are few */
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
	       often, target, text)                                                                \
	[OPTION_##field] = {.name = long_name,                                                     \
			    .argument = takes,                                                     \
			    .standard = otherwise,                                                 \
			    .help = text,                                                          \
			    .min = low,                                                            \
			    .max = high,                                                           \
			    .type = OPTION_IS_##kind,                                              \
			    .scope = OPTION_##where,                                               \
			    .shown = OPTION_##often,                                               \
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

bool option_misnamed(enum command_id command, const char *name, struct rlmd_error *err)
{
	static const char key[] =
		"all users of the machine can see a key on the command line: set it in the "
		"environment (OPENAI_API_KEY, ANTHROPIC_API_KEY), or name a file that holds it "
		"with --key-file";
	static const struct {
		const char *name;
		enum option_id meant;
		const char *advice;
	} names[] = {
		{"api-key", OPTION_key_file, key},
		{"api_key", OPTION_key_file, key},
		{"apikey", OPTION_key_file, key},
		{"key", OPTION_key_file, key},
		{"file", OPTION_contexts, "-c FILE (--context) is a file that the task is about"},
		{"file", OPTION_rules, "--include FILE reviews only that file of the directory"},
		{"input", OPTION_contexts, "-c FILE (--context) is a file that the task is about"},
		{"version", OPTION_help, "'rlmd --version' shows it"},
		{"-j", OPTION_json, "write --json"},
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i].name) && option_is_of(names[i].meant, command))
			return !error_set(err, RLMD_ERROR_USAGE, "there is no option %s%s: %s",
					  *name == '-' ? "" : "--", name, names[i].advice);
	return false;
}

const struct option_former *option_former(enum command_id command, size_t *at)
{
	static const struct option_former formers[] = {
		{"journal", OPTION_store, NULL, "--store FILE"},
		{"fail-fast", OPTION_halt, "1", "--halt 1"},
	};

	while (*at < sizeof formers / sizeof *formers) {
		const struct option_former *former = &formers[(*at)++];

		if (option_is_of(former->now, command))
			return former;
	}
	return NULL;
}

/* --- values ------------------------------------------------------------------------- */

static bool read_switch(const char *string, bool *ret)
{
	static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strcasecmp(string, words[i])) {
			*ret = i % 2;
			return true;
		}
	return false;
}

static bool is_choice(const char *string, const char *choices)
{
	size_t size = strlen(string);

	for (const char *at = choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
		if (size && size == strcspn(at, "|") && !strncmp(at, string, size))
			return true;
	return false;
}

/* Zero is what many programs take for "no limit". */
static const char *zero_advice(const struct option_row *row, int64_t number)
{
	return number || row->min != 1 ? "" : "; 0 would allow nothing, it does not mean no limit";
}

static bool read_count(const struct option_row *row, const char *string, int64_t *ret,
		       struct rlmd_error *err)
{
	int64_t number = 0;
	bool read = number_parse(string, "KMG", 1000, &number);

	if (read && number >= row->min && number <= row->max) {
		*ret = number;
		return true;
	}
	return error_set(err, RLMD_ERROR_USAGE,
			 "'%s' is no whole number from %" PRId64 " to %" PRId64 "%s", string,
			 row->min, row->max,
			 read ? zero_advice(row, number)
			      : "; write digits, or 100k for 100000 and 2M for 2000000");
}

/* Digits with or without a point: no sign, no exponent, nothing that is no number. */
static bool read_number(const struct option_row *row, const char *string, double *ret,
			struct rlmd_error *err)
{
	size_t size = strspn(string, "0123456789.");
	char *end;
	double number = strtod(string, &end);

	if (size && !string[size] && !*end && number >= (double)row->min &&
	    number <= (double)row->max) {
		*ret = number;
		return true;
	}
	return error_set(err, RLMD_ERROR_USAGE,
			 "'%s' is no number from %" PRId64 " to %" PRId64 "; write it like 0.7",
			 string, row->min, row->max);
}

static bool read_duration(const struct option_row *row, const char *string, int64_t *ret,
			  struct rlmd_error *err)
{
	char least[16];
	int64_t ms;

	if (!clock_parse_duration(string, &ms, err))
		return false;
	clock_format(row->min, least);
	if (ms < row->min || ms > row->max)
		return error_set(err, RLMD_ERROR_USAGE, "'%s' is not from %s to %" PRId64 "h%s",
				 string, least, row->max / HOUR_MS, zero_advice(row, ms));
	*ret = ms;
	return true;
}

/* As it would be written: the largest unit that leaves nothing over. */
static void format_size(int64_t bytes, char out[static 24])
{
	static const char *const units[] = {"", "K", "M", "G", "T"};
	size_t unit = 0;

	while (bytes && bytes % 1024 == 0 && unit < sizeof units / sizeof units[0] - 1) {
		bytes /= 1024;
		unit++;
	}
	snprintf(out, 24, "%" PRId64 "%s", bytes, units[unit]);
}

static bool read_size(const struct option_row *row, const char *string, int64_t *ret,
		      struct rlmd_error *err)
{
	char least[24], most[24];

	if (number_parse(string, "KMGT", 1024, ret) && *ret >= row->min && *ret <= row->max)
		return true;
	format_size(row->min, least);
	format_size(row->max, most);
	return error_set(err, RLMD_ERROR_USAGE,
			 "'%s' is no size from %s to %s; write 512M, 1G or bytes", string, least,
			 most);
}

static bool read_text(const struct option_row *row, const char *string, const char **ret,
		      struct rlmd_error *err)
{
	*ret = string;
	if (!*string)
		return error_set(err, RLMD_ERROR_USAGE, "the %s is empty", row->argument);
	if ((row->type == OPTION_IS_NAME || row->type == OPTION_IS_PHRASES) &&
	    !text_is_utf8(text_of(string)))
		return error_set(err, RLMD_ERROR_USAGE, "'%s' is not UTF-8; write the %s in UTF-8",
				 string, row->argument);
	return true;
}

bool option_value_read(const struct option_row *row, const char *string, union option_value *ret,
		       struct rlmd_error *err)
{
	switch (row->type) {
	case OPTION_IS_TEXT:
	case OPTION_IS_NAME:
	case OPTION_IS_LIST:
	case OPTION_IS_PHRASES:
		return read_text(row, string, &ret->text, err);
	case OPTION_IS_CHOICE:
		ret->text = string;
		return is_choice(string, row->argument) ||
		       error_set(err, RLMD_ERROR_USAGE, "'%s' is none of %s", string,
				 row->argument);
	case OPTION_IS_COUNT:
		return read_count(row, string, &ret->number, err);
	case OPTION_IS_NUMBER:
		return read_number(row, string, &ret->real, err);
	case OPTION_IS_DURATION:
		return read_duration(row, string, &ret->number, err);
	case OPTION_IS_MONEY:
		return money_parse(string, &ret->number, err);
	case OPTION_IS_SIZE:
		return read_size(row, string, &ret->number, err);
	case OPTION_IS_SWITCH:
		return read_switch(string, &ret->on) ||
		       error_set(err, RLMD_ERROR_USAGE, "'%s' is neither yes nor no", string);
	case OPTION_IS_TALLY:
		ret->number = 1;
		return true;
	}
	return false;
}

/* --- --help -------------------------------------------------------------------------- */

/* Words from `column` on, broken before the last one that would not fit. */
static void add_words(struct evbuffer *out, const char *text, size_t column)
{
	size_t at = column;

	while (*text) {
		size_t size = strcspn(text, " ");

		if (at > column && at + 1 + size > HELP_WIDTH) {
			buffer_add_printf(out, "\n%*s", (int)column, "");
			at = column;
		}
		if (at > column) {
			buffer_add(out, " ", 1);
			at++;
		}
		buffer_add(out, text, size);
		at += size;
		text += size;
		text += strspn(text, " ");
	}
	buffer_add(out, "\n", 1);
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

	buffer_add_printf(out, "%-*s", HELP_COLUMN, left);
	if (strlen(left) + 2 > HELP_COLUMN)
		buffer_add_printf(out, "\n%*s", HELP_COLUMN, "");
	add_words(out, right, HELP_COLUMN);
}

static size_t count_options(enum command_id command)
{
	size_t count = 0;

	for (size_t i = 0; i < OPTION_COUNT; i++)
		count += option_is_of((enum option_id)i, command);
	return count;
}

void option_help(struct evbuffer *out, enum command_id command, bool all)
{
	size_t count = count_options(command);
	const char *heading = NULL;

	all |= count <= HELP_OPTIONS;

/* A group none of whose options is shown has no heading. */
#define GROUP(name) heading = name;
#define OPTION(field, ...)                                                                         \
	if (option_is_of(OPTION_##field, command) &&                                               \
	    (all || option_table[OPTION_##field].shown == OPTION_OFTEN)) {                         \
		if (heading)                                                                       \
			buffer_add_printf(out, "\n%s:\n", heading);                                \
		heading = NULL;                                                                    \
		add_option(out, &option_table[OPTION_##field]);                                    \
	}
#include "cli/options.def"
#undef OPTION
#undef GROUP
	if (!all)
		buffer_add_printf(out, "\n--help-all shows all %zu options.\n", count);
}
