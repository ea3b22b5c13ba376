#include "source/secret.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* --- by name ------------------------------------------------------------------------ */

enum how { EXACT, PREFIX, SUFFIX };

static bool is_called(const char *name, enum how how, const char *wanted)
{
	size_t size = strlen(name), length = strlen(wanted);

	if (how == EXACT ? size != length : size < length)
		return false;
	return !strncasecmp(how == SUFFIX ? name + size - length : name, wanted, length);
}

static const char *by_last_part(const char *name, struct rlmd_text text)
{
	static const struct {
		enum how how;
		const char *name, *with, *what;
	} rows[] = {
#define SECRET_NAME(how, name, with, what) {how, name, with, what},
#include "source/secrets.def"
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (is_called(name, rows[i].how, rows[i].name) &&
		    (!rows[i].with || text_find(text, rows[i].with)))
			return rows[i].what;
	return NULL;
}

static const char *by_folder(const char *part, size_t size)
{
	static const struct {
		const char *name, *what;
	} rows[] = {
#define SECRET_FOLDER(name, what) {name, what},
#include "source/secrets.def"
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (size == strlen(rows[i].name) && !strncasecmp(part, rows[i].name, size))
			return rows[i].what;
	return NULL;
}

const char *secret_by_name(const char *path, struct rlmd_text text)
{
	const char *slash;

	while ((slash = strchr(path, '/'))) {
		const char *what = by_folder(path, (size_t)(slash - path));

		if (what)
			return what;
		path = slash + 1;
	}
	return by_last_part(path, text);
}

/* --- by content --------------------------------------------------------------------- */

enum characters { UPPER, WORD, MIXED, PATH };

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool belongs(enum characters of, char c)
{
	switch (of) {
	case UPPER:
		return is_upper(c) || text_is_digit(c);
	case WORD:
	case MIXED:
		return is_upper(c) || is_lower(c) || text_is_digit(c) || c == '_' || c == '-';
	case PATH:
		return is_upper(c) || is_lower(c) || text_is_digit(c) || (c && strchr("_-+/.=", c));
	}
	return false;
}

/* `text` begins behind the prefix. No more of it is looked at than a token needs. */
static bool is_token(struct rlmd_text text, enum characters of, size_t least)
{
	bool upper = false, lower = false, digit = false;
	size_t size = 0;

	for (; size < text.size && size < SECRET_SPAN / 2 && belongs(of, text.bytes[size]);
	     size++) {
		upper |= is_upper(text.bytes[size]);
		lower |= is_lower(text.bytes[size]);
		digit |= text_is_digit(text.bytes[size]);
	}
	return size >= least && (of != MIXED || (upper && lower && digit));
}

static bool is_header(struct rlmd_text text, const char *then)
{
	const char *end;

	if (text.size > SECRET_SPAN / 2)
		text.size = SECRET_SPAN / 2;
	end = text.size ? memchr(text.bytes, '\n', text.size) : NULL;
	if (end)
		text.size = (size_t)(end - text.bytes);
	return text_find(text, then);
}

static const struct token_row {
	const char *prefix;
	size_t size; /* of it */
	enum characters of;
	size_t least;
	const char *then; /* NULL: a token */
	const char *what;
} token_rows[] = {
#define SECRET_TOKEN(prefix, of, least, what) {prefix, sizeof(prefix) - 1, of, least, NULL, what},
#define SECRET_HEADER(first, then, what)      {first, sizeof(first) - 1, WORD, 0, then, what},
#include "source/secrets.def"
};

enum { TOKEN_ROWS = sizeof token_rows / sizeof *token_rows };

/* The kind of secret that begins here, at the start of a word. */
static const char *secret_at(struct rlmd_text text)
{
	for (size_t i = 0; i < TOKEN_ROWS; i++) {
		const struct token_row *row = &token_rows[i];
		struct rlmd_text rest;

		if (text.bytes[0] != row->prefix[0] || text.size < row->size ||
		    memcmp(text.bytes, row->prefix, row->size) != 0)
			continue;
		rest = text_slice(text, row->size, text.size);
		if (row->then ? is_header(rest, row->then) : is_token(rest, row->of, row->least))
			return row->what;
	}
	return NULL;
}

/*
 * A prefix has three characters at least, and so one pair of them at every other place: there most
 * of a text is looked at once, and is none. Characters that stand together in a prefix have a bit
 * in common, one for each first character: the low half for its first two, the high one for the
 * next two.
 */
static struct {
	bool ready;
	uint64_t first[256], second[256];
} pairs;

static void prepare_pairs(void)
{
	uint64_t bits[256] = {0}, used = 1;

	for (size_t i = 0; i < TOKEN_ROWS; i++) {
		const unsigned char *prefix = (const unsigned char *)token_rows[i].prefix;
		uint64_t *bit = &bits[prefix[0]];

		if (!*bit) {
			*bit = used;
			used <<= 1;
		}
		assert(*bit <= UINT32_MAX && token_rows[i].size >= 3);
		pairs.first[prefix[0]] |= *bit;
		pairs.second[prefix[1]] |= *bit;
		pairs.first[prefix[1]] |= *bit << 32;
		pairs.second[prefix[2]] |= *bit << 32;
	}
	pairs.ready = true;
}

/* JSON writes the end of a line as a letter behind a backslash: what follows begins anew. */
static bool ends_escape(struct rlmd_text text, size_t at)
{
	char c = text.bytes[at];

	return (c == 'n' || c == 'r' || c == 't') && at && text.bytes[at - 1] == '\\';
}

static bool is_within_word(struct rlmd_text text, size_t at)
{
	char before = at ? text.bytes[at - 1] : ' ';

	return before != '-' && belongs(WORD, before) && !ends_escape(text, at - 1);
}

static uint64_t look_at_pair(const unsigned char *at)
{
	return pairs.first[at[0]] & pairs.second[at[1]];
}

static const char *secret_from(struct rlmd_text text, size_t at)
{
	return is_within_word(text, at) ? NULL : secret_at(text_slice(text, at, text.size));
}

/* The kind of secret of which this pair is a part: it begins one before it, or there. */
static const char *secret_around(struct rlmd_text text, size_t at, uint64_t pair)
{
	const unsigned char *bytes = (const unsigned char *)text.bytes;
	const char *what = NULL;

	if (at && pair >> 32 & look_at_pair(bytes + at - 1))
		what = secret_from(text, at - 1);
	if (!what && at + 2 < text.size && (uint32_t)pair & look_at_pair(bytes + at + 1) >> 32)
		what = secret_from(text, at);
	return what;
}

const char *secret_in_text(struct rlmd_text text)
{
	const unsigned char *bytes = (const unsigned char *)text.bytes;
	const char *what = NULL;

	if (!pairs.ready)
		prepare_pairs();
	for (size_t i = 0; i + 1 < text.size && !what; i += 2) {
		uint64_t pair = look_at_pair(bytes + i);

		if (pair)
			what = secret_around(text, i, pair);
	}
	return what;
}
