/* base/array.h - arrays that grow by one, and arrays of names. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/text.h"

/* Room for one element more than `count`; the array doubles whenever that is a power of two. */
static inline void *array_grow(void *array, size_t count, size_t size)
{
	if (count & (count - 1))
		return array;
	return xreallocarray(array, count ? count * 2 : 1, size);
}

/* Whether the text is one of these names, letters of ASCII in either case. */
static inline bool array_has(const char *const *names, size_t count, struct rlmd_text text)
{
	for (size_t i = 0; i < count; i++)
		if (text_equal_caseless(text, names[i]))
			return true;
	return false;
}
