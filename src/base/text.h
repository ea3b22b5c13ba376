/*
 * base/text.h - bytes with a length, UTF-8, and how much of what they hold.
 *
 * A struct rlmd_text lends: it never owns its bytes, and need not end in NUL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rlmd/rlmd.h>

#include "base/token.h"

struct evbuffer;

struct rlmd_text text_of(const char *string); /* NULL gives the empty text */

static inline struct rlmd_text text_from(const void *bytes, size_t size)
{
	return (struct rlmd_text){bytes, size};
}

static inline struct rlmd_text text_slice(struct rlmd_text text, size_t start, size_t end)
{
	return text_from(start ? text.bytes + start : text.bytes, end - start);
}

size_t text_line_end(struct rlmd_text, size_t start); /* behind the line feed, or the text's end */
bool text_equal(struct rlmd_text, const char *string);
bool text_starts(struct rlmd_text, const char *prefix);

/* Letters of ASCII in either case. */
bool text_equal_caseless(struct rlmd_text, const char *string);
bool text_starts_caseless(struct rlmd_text, const char *prefix);

bool text_is_space(char);                          /* ASCII white space */
bool text_is_digit(char);                          /* of ASCII */
bool text_is_one_of(char, const char *set);        /* false of NUL */
struct rlmd_text text_trim(struct rlmd_text);      /* without ASCII white space at both ends */
struct rlmd_text text_last_line(struct rlmd_text); /* of what text_trim() leaves */
/* The last line of an error of code, without the advice behind it (worker/tracebacks.py). */
struct rlmd_text text_error_line(struct rlmd_text);
char *text_copy(struct rlmd_text);                           /* owned, NUL-terminated */
const char *text_find(struct rlmd_text, const char *needle); /* first place, or NULL */

/* The longest prefix of at most `size` bytes that does not cut a UTF-8 sequence. */
struct rlmd_text text_clip(struct rlmd_text, size_t size);

/*
 * For terminals and logs: what cannot be seen as what it is (base/unseen.def) and invalid bytes
 * become \n, \t, \x1b, \u202e and the like; joiners and variation selectors pass where writing
 * needs them. Always terminates `out`; cuts what does not fit.
 */
void text_escape(struct rlmd_text, char *out, size_t out_size);

/* The same into an evbuffer, line feeds and tabs left as they are. */
void text_escape_lines(struct rlmd_text, struct evbuffer *out);

/*
 * Appends `text` with `bracket` for each "[" that would make a command of what is before it: CI
 * services look for "##[", "##vso[" and the like anywhere in a line of a log.
 */
void text_disarm(struct rlmd_text, const char *bracket, struct evbuffer *out);

/* Appends `text` to `out`, each invalid UTF-8 sequence replaced by U+FFFD. */
void text_repair(struct rlmd_text, struct evbuffer *out);
bool text_is_utf8(struct rlmd_text);

/* Its characters, where it is valid UTF-8: bytes that do not go on with one. */
size_t text_characters(struct rlmd_text);

/* Of a text that begins with what is not UTF-8: how many bytes one U+FFFD stands for. */
size_t text_invalid(struct rlmd_text);

/* All of a buffer's bytes, lent until it changes; empty, but not NULL, where there are none. */
struct rlmd_text text_in(struct evbuffer *);

/*
 * Owned bytes gathered in an evbuffer, as one NUL-terminated string; the
 * buffer is emptied. `ret_size` (may be NULL) is without the NUL.
 */
char *text_drain(struct evbuffer *, size_t *ret_size);

/*
 * The characters and lines of a text, counted while its bytes pass by in pieces of any size.
 * Invalid UTF-8 counts one character a byte, as Python's surrogateescape does.
 */
struct text_scan {
	size_t bytes;
	size_t characters; /* code points */
	size_t invalid;    /* bytes that are not UTF-8 */
	size_t line_feeds;
	uint32_t highest; /* highest code point */
	struct token_scan tokens;
	/* private */
	uint32_t point;
	uint8_t need, have, low, high;
};

void text_scan_feed(struct text_scan *, struct rlmd_text);
void text_scan_end(struct text_scan *);

/* Adds what another one, which has ended, counted of a text behind this one's. */
void text_scan_add(struct text_scan *, const struct text_scan *more);

/* token_estimate() of the text, for a model of which nothing is known. */
int64_t text_scan_tokens(const struct text_scan *);
int64_t text_tokens(struct rlmd_text);

/* Bytes that Python needs for it as a str: 1, 2 or 4 a character (PEP 393). */
size_t text_scan_python_size(const struct text_scan *);
