/*
 * worker/demand_paging.h - the characters of a text, decoded where they are touched.
 *
 * Room for all of them is reserved, and nothing lies there: the first look at a part is a fault of
 * the processor, whose handler decodes that part from the UTF-8 of the text and lets the look go
 * on. The last TEXT_WINDOW bytes that were decoded are kept; a part that is forgotten is decoded
 * again. So a text takes no more memory than its bytes, however wide its characters are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fixed_width.h"

/* Bytes that are decoded at once: a huge page of most processors. */
enum { PAGING_PART = 2 << 20 };

/*
 * Where a text's characters are to be: `room` bytes, whole PAGING_PARTs and aligned like them, of
 * which none may be touched now; `count` characters of that form are decoded from `begin` up to
 * `end` at most, and zeros stand behind them. All of it is lent for good. False for want of memory,
 * and then errno says why.
 */
bool paging_add(char *characters, size_t room, enum text_form, size_t count, const uint8_t *begin,
		const uint8_t *end);
void paging_remove(const char *characters); /* they may be unmapped then */

/* Has faults handled, in this process and those that are forked from it; may be called again. */
bool paging_begin(void);
