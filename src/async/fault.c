#include "async/fault.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

const char *rlmd_plan_error_name(enum rlmd_plan_error_kind kind)
{
	switch (kind) {
	case RLMD_PLAN_OK:
		return "none";
	case RLMD_PLAN_ERROR_PLAN:
		return "plan";
	case RLMD_PLAN_ERROR_TIMEOUT:
		return "timeout";
	case RLMD_PLAN_ERROR_CANCELLED:
		return "cancelled";
	case RLMD_PLAN_ERROR_DEPENDENCY:
		return "dependency";
	case RLMD_PLAN_ERROR_BUDGET:
		return "budget";
	case RLMD_PLAN_ERROR_INPUT:
		return "input";
	case RLMD_PLAN_ERROR_ALL_FAILED:
		return "all_failed";
	case RLMD_PLAN_ERROR_OPERATION:
		break;
	}
	return "operation";
}

bool fault_set(struct rlmd_plan_error *err, const char *fmt, ...)
{
	char text[sizeof err->text];
	va_list args;

	if (!err)
		return false;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	err->kind = RLMD_PLAN_ERROR_PLAN;
	text_escape(text_of(text), err->text, sizeof err->text);
	return false;
}
