/*
 * base/token_kinds.h - what base/token.c and base/token_block.c both go by.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	LONG = 7,    /* letters that a common word has at most */
	JUMBLED = 3, /* changes within a word that no name in a program has */
	GROUP = 3,   /* digits that are one token for most models */
};

/* What a character is, as far as its first byte tells. */
enum kind {
	P, /* punctuation, and what else there is in ASCII; also what is before a text */
	S, /* space */
	N, /* end of a line */
	D, /* digit */
	L, /* small letter */
	U, /* capital */
	A, /* Latin letter beyond ASCII */
	R, /* Cyrillic */
	X, /* another alphabet */
	Y, /* symbol, and what is not UTF-8 */
	K, /* Chinese, Japanese, Korean */
	E, /* beyond U+FFFF */
	M, /* the second byte tells */
	C, /* goes on with a character */
};

static inline bool is_letter(uint8_t kind)
{
	return kind == L || kind == U || kind == A;
}
