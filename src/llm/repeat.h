/*
 * llm/repeat.h - whether a text has come to say the same thing again and again.
 *
 * Small models fall into it: a line, a phrase, a word without end. Only what is the same byte for
 * byte counts, often and for long; a list whose lines differ in a number is none of it.
 */
#pragma once

#include <stddef.h>

#include "base/text.h"

enum {
	REPEAT_LEAST = 4096, /* bytes that must be the same piece over and over, */
	REPEAT_TIMES = 8,    /* so often at least */
	REPEAT_TAIL = 8192,  /* bytes at a text's end that are looked at: no piece is longer than an
				eighth of them */
};

/* The length of the piece that the text's end consists of; 0: of none. Linear in REPEAT_TAIL. */
size_t repeat_period(struct rlmd_text);

/* How much of a text whose end has this period stands before the second such piece, or to the end
 * of the line in which that begins. */
size_t repeat_start(struct rlmd_text, size_t period);
