#include "cli/plan_result.h"

#include "base/alloc.h"
#include "base/json.h"

enum { STATUS_SOME_FAILED = 3 };

/* An operation that failed because another did is no cause. */
static void count_failure(struct plan_tally *tally, const json_t *operation)
{
	struct rlmd_text kind = json_get_text(json_object_get(operation, "error"), "kind");
	enum rlmd_error_kind known = error_named(kind);
	int status = known ? rlmd_error_exit_status(known) : STATUS_SOME_FAILED;

	tally->failed++;
	if (text_equal(kind, "dependency"))
		return;
	if (!tally->first) {
		tally->first = operation;
		tally->cause = status;
	}
	if (tally->cause != status)
		tally->cause = 0;
}

struct plan_tally plan_result_tally(const json_t *result)
{
	json_t *operations = json_object_get(result, "results"), *operation;
	struct plan_tally tally = {
		.count = json_object_size(operations),
		.won = json_is_string(json_object_get(result, "winner")),
	};
	const char *id;

	json_object_foreach (operations, id, operation) {
		struct rlmd_text status = json_get_text(operation, "status");

		tally.succeeded += text_equal(status, "succeeded");
		tally.cancelled += text_equal(status, "cancelled");
		if (text_equal(status, "failed"))
			count_failure(&tally, operation);
	}
	return tally;
}

int plan_result_status(const struct plan_tally *tally)
{
	if (tally->won || !tally->failed)
		return 0;
	if (tally->cause == rlmd_error_exit_status(RLMD_ERROR_BUDGET) ||
	    (tally->cause && !tally->succeeded))
		return tally->cause;
	return STATUS_SOME_FAILED;
}

char *plan_result_text(const struct plan_tally *tally)
{
	const char *plural = tally->count == 1 ? "" : "s";

	if (tally->failed && tally->cancelled)
		return xasprintf("%zu operation%s, %zu failed, %zu cancelled", tally->count, plural,
				 tally->failed, tally->cancelled);
	if (tally->failed || tally->cancelled)
		return xasprintf("%zu operation%s, %zu %s", tally->count, plural,
				 tally->failed ? tally->failed : tally->cancelled,
				 tally->failed ? "failed" : "cancelled");
	return xasprintf("%zu operation%s", tally->count, plural);
}

void plan_result_error(const struct plan_tally *tally, struct rlmd_error *err)
{
	const json_t *error = json_object_get(tally->first, "error");
	struct rlmd_text id = json_get_text(tally->first, "id");
	struct rlmd_text message = text_clip(json_get_text(error, "message"), 300);

	error_set(err, RLMD_ERROR_INTERNAL,
		  "%zu of %zu operation%s failed; the first, '%.*s': %.*s", tally->failed,
		  tally->count, tally->count == 1 ? "" : "s", (int)id.size, id.bytes,
		  (int)message.size, message.bytes);
}
