#include "cli/option_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/money.h"
#include "base/scaled.h"
#include "base/text.h"

enum { HOUR_MS = 3600000 };

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
	bool read = scaled_parse(string, "KMG", 1000, &number);

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

	if (scaled_parse(string, "KMGT", 1024, ret) && *ret >= row->min && *ret <= row->max)
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
