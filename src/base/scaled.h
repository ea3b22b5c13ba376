/* base/scaled.h - whole numbers as people write them: 500, 100k, 2G. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Digits with one of `units` behind them, in either case, each `step` times the one before; or with
 * none. False: it is nothing of the kind, or too large. */
bool scaled_parse(const char *string, const char *units, int64_t step, int64_t *ret);
