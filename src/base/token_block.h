/*
 * base/token_block.h - the characters of ASCII counted as base/token.c does, 64 of them at once.
 *
 * What they are is a mask for each kind, a bit for each byte: so what stands behind what is a
 * shift, and runs are told by what a sum carries. Nearly all bytes of most texts go this way, in a
 * quarter of the time that one after the other takes.
 */
#pragma once

#include <stdint.h>

struct token_scan;

enum { TOKEN_BLOCK = 64 }; /* bytes */

/* Takes whole blocks, each character for so many like it, up to the first that is cut short or not
 * ASCII; returns where that begins. */
const char *token_block_look(struct token_scan *, const char *at, const char *end, int64_t weight);
