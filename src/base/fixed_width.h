/*
 * base/fixed_width.h - a text with all characters in the same number of bytes.
 *
 * As many as the highest of them needs, in the machine's order: so Python keeps a
 * str in memory (PEP 393), and takes one that lies in a memory file for its own
 * where it lies (worker/mapped_text.h). ASCII is as wide as it stands.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* How the bytes of a file mean characters. */
enum text_form { TEXT_UTF8, TEXT_ASCII, TEXT_LATIN1, TEXT_UCS2, TEXT_UCS4 };

const char *text_form_name(enum text_form);  /* as `start` tells it (wire/messages.def) */
enum text_form text_form_of(uint32_t point); /* the narrowest that has the code point */
size_t text_form_width(enum text_form);      /* bytes a character; not of TEXT_UTF8 */

/* A copy of a text in the making, in a memory file. */
struct fixed_width;

/* RLMD_ERROR_INPUT where there is no memory file. */
struct fixed_width *fixed_width_new(enum text_form, struct rlmd_error *);
void fixed_width_free(struct fixed_width *); /* NULL is fine */

/*
 * Takes the next `bytes` of the text, which is the same each time, or some more; at the end
 * the file is sealed. Bytes that are not UTF-8 become U+DC80..U+DCFF, a byte each, as Python's
 * surrogateescape does. RLMD_ERROR_INPUT where there is no memory.
 */
bool fixed_width_go_on(struct fixed_width *, struct rlmd_text, size_t bytes, struct rlmd_error *);
bool fixed_width_done(const struct fixed_width *);
int fixed_width_fd(const struct fixed_width *); /* lent */
