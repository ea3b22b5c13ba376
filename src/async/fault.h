/* async/fault.h - why something is no plan. */
#pragma once

#include <rlmd/plan.h>

/* Returns false, so that a failing function can end in one line; the kind is ERROR_PLAN. */
bool fault_set(struct rlmd_plan_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
