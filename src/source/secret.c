#include "source/secret.h"

#include <stdbool.h>
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

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool belongs(enum characters of, char c)
{
	switch (of) {
	case UPPER:
		return is_upper(c) || is_digit(c);
	case WORD:
	case MIXED:
		return is_upper(c) || is_lower(c) || is_digit(c) || c == '_' || c == '-';
	case PATH:
		return is_upper(c) || is_lower(c) || is_digit(c) || (c && strchr("_-+/.=", c));
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
		digit |= is_digit(text.bytes[size]);
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

/* What begins here, at the start of a word. */
static const char *secret_at(struct rlmd_text text)
{
	static const struct {
		const char *prefix;
		enum characters of;
		size_t least;
		const char *then; /* NULL: a token */
		const char *what;
	} rows[] = {
#define SECRET_TOKEN(prefix, of, least, what) {prefix, of, least, NULL, what},
#define SECRET_HEADER(first, then, what)      {first, WORD, 0, then, what},
#include "source/secrets.def"
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t size = strlen(rows[i].prefix);
		struct rlmd_text rest = text_from(text.bytes + size, text.size - size);

		if (text.bytes[0] != rows[i].prefix[0] || !text_starts(text, rows[i].prefix))
			continue;
		if (rows[i].then ? is_header(rest, rows[i].then)
				 : is_token(rest, rows[i].of, rows[i].least))
			return rows[i].what;
	}
	return NULL;
}

/* What a character is to the search, for most are nothing. */
enum { STARTS = 1, IN_WORD = 2 };

static void classify(unsigned char classes[static 256])
{
	static const char prefixes[][32] = {
#define SECRET_TOKEN(prefix, of, least, what) prefix,
#define SECRET_HEADER(first, then, what)      first,
#include "source/secrets.def"
	};

	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		classes[(unsigned char)prefixes[i][0]] |= STARTS;
	for (int c = 0; c < 128; c++)
		if (c != '-' && belongs(WORD, (char)c))
			classes[c] |= IN_WORD;
}

/* JSON writes the end of a line as a letter behind a backslash: what follows begins anew. */
static bool ends_escape(struct rlmd_text text, size_t at)
{
	char c = text.bytes[at];

	return (c == 'n' || c == 'r' || c == 't') && at && text.bytes[at - 1] == '\\';
}

const char *secret_in_text(struct rlmd_text text)
{
	unsigned char classes[256] = {0};
	bool within = false; /* a word */

	classify(classes);
	for (size_t i = 0; i < text.size; i++) {
		unsigned char class = classes[(unsigned char)text.bytes[i]];

		if (class & STARTS && !within) {
			const char *what = secret_at(text_from(text.bytes + i, text.size - i));

			if (what)
				return what;
		}
		within = class & IN_WORD && !ends_escape(text, i);
	}
	return NULL;
}
