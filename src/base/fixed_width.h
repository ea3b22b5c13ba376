/*
 * base/fixed_width.h - a text with all characters in the same number of bytes.
 *
 * As many as the highest of them needs, in the machine's order: so Python keeps a
 * str in memory (PEP 393). Bytes that are not UTF-8 become U+DC80..U+DCFF, a byte each, as
 * Python's surrogateescape does. Workers link this module as well (worker/demand_paging.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The width that a worker has a text in; TEXT_UTF8: it decodes all of it at once. */
enum text_form { TEXT_UTF8, TEXT_ASCII, TEXT_LATIN1, TEXT_UCS2, TEXT_UCS4 };

const char *text_form_name(enum text_form);  /* as `start` tells it (wire/messages.def) */
enum text_form text_form_of(uint32_t point); /* the narrowest that has the code point */
size_t text_form_width(enum text_form);      /* bytes a character; not of TEXT_UTF8 */

/* Bytes of characters that a worker keeps decoded of texts that are not ASCII; of all of them. */
enum { TEXT_WINDOW = 12 << 20 };

/*
 * Lays out the characters from `*at` on, at most `count` of them, and moves `*at` behind them;
 * `end` is that of the text. `out` has room for them and is aligned to their width. The form is
 * wide enough for each of them. Gives how many there were.
 */
size_t fixed_width_take(enum text_form, const uint8_t **at, const uint8_t *end, void *out,
			size_t count);
size_t fixed_width_skip(const uint8_t **at, const uint8_t *end, size_t count); /* writes nothing */
