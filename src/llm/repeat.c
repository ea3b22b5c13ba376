#include "llm/repeat.h"

#include <stdint.h>
#include <string.h>

/* A byte of the text, counted from its end. */
static char back(struct rlmd_text text, size_t place)
{
	return text.bytes[text.size - 1 - place];
}

/*
 * By the prefix function of the text read backwards (Knuth, Morris, Pratt): what of a prefix is
 * also its end says how far it can be shifted and stay the same.
 */
size_t repeat_period(struct rlmd_text text)
{
	uint16_t border[REPEAT_TAIL];
	size_t size = text.size < REPEAT_TAIL ? text.size : REPEAT_TAIL, shared = 0;

	if (size < REPEAT_LEAST)
		return 0;
	border[0] = 0;
	for (size_t i = 1; i < size; i++) {
		size_t period;

		while (shared && back(text, i) != back(text, shared))
			shared = border[shared - 1];
		shared += back(text, i) == back(text, shared);
		border[i] = (uint16_t)shared;
		period = i + 1 - shared;
		if (i + 1 >= REPEAT_LEAST && period * REPEAT_TIMES <= i + 1)
			return period;
	}
	return 0;
}

/* The line at which a text is cut is left whole. */
size_t repeat_start(struct rlmd_text text, size_t period)
{
	size_t start = text.size - period, end;
	const char *line;

	while (start && text.bytes[start - 1] == text.bytes[start - 1 + period])
		start--;
	end = start + period;
	line = text.bytes[end - 1] == '\n' ? NULL : memchr(text.bytes + end, '\n', period);
	return line ? (size_t)(line + 1 - text.bytes) : text_clip(text, end).size;
}
