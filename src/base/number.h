/*
 * base/number.h - whole numbers: the smaller and the larger one, and as people write them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

static inline int64_t int64_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t int64_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* 500, 100k, 2G: digits with one of `units` behind them, in either case, each `step` times the one
 * before; or with none. False: it is nothing of the kind, or too large. */
bool number_parse(const char *string, const char *units, int64_t step, int64_t *ret);
