/*
 * cli/no_result.h - the result object of what no run began for.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"

/* New. Nothing was used; `notes` are its warnings, `err` why nothing began, and NULL where nothing
 * had to. */
json_t *no_result(json_t *notes, const struct rlmd_error *err);
