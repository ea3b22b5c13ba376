/* trace/result.h - what users get: the parts of the result object. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "budget/budget.h"

/* US dollars as a JSON number, new; null where the price is unknown. */
json_t *result_cost(bool known, int64_t pico);

/* The `usage` member (LIB-6), new: the account and all below it. */
json_t *result_usage(const struct budget *);

/* The `error` member, new; `provider` is left out where it is NULL. */
json_t *result_error(const struct rlmd_error *, const char *provider);
