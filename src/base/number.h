/*
 * base/number.h - what the standard library has no function for.
 */
#pragma once

#include <stdint.h>

static inline int64_t int64_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t int64_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}
