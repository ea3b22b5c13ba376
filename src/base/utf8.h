/*
 * base/utf8.h - one sequence of UTF-8, for the loops that every text goes through.
 */
#pragma once

#include <stddef.h>

static inline int utf8_goes_on(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

/* The bytes of the valid sequence of several bytes at `s`, of which `left` are there; else 0. */
static inline size_t utf8_sequence(const char *at, size_t left)
{
	const unsigned char *s = (const unsigned char *)at;

	if (s[0] < 0xe0)
		return s[0] >= 0xc2 && left >= 2 && utf8_goes_on(s[1]) ? 2 : 0;
	if (s[0] < 0xf0) { /* no longer than need be, and no surrogate */
		if (left < 3 || !utf8_goes_on(s[1]) || !utf8_goes_on(s[2]))
			return 0;
		return (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ? 0 : 3;
	}
	if (s[0] > 0xf4 || left < 4 || !utf8_goes_on(s[1]) || !utf8_goes_on(s[2]) ||
	    !utf8_goes_on(s[3]))
		return 0;
	return (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f) ? 0 : 4;
}
