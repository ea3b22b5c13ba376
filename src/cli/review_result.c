#include "cli/review_result.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"

bool review_result_take(struct rlmd_review *review, struct rlmd_context *context,
			struct rlmd_text answer, json_t *result, struct rlmd_error *err)
{
	auto_free char *report = NULL;
	size_t size;

	if (!rlmd_review_take(review, context, answer, err))
		return false;
	report = rlmd_review_report(review, RLMD_REVIEW_JSON, &size);
	json_put(result, "review", json_loadb(report, size, JSON_ALLOW_NUL, NULL));
	return true;
}

char *review_result_take_spare(struct rlmd_review *review, struct rlmd_context *context,
			       json_t *result, struct rlmd_error *failure)
{
	const char *what;
	struct rlmd_text spare = rlmd_review_spare(review, &what);
	auto_free char *warning = NULL;

	if (!spare.size || failure->kind == RLMD_ERROR_CANCELLED ||
	    failure->kind == RLMD_ERROR_INTERNAL)
		return NULL;
	warning = xasprintf("%s: %s", what, failure->text);
	json_append(json_object_get(result, "warnings"), json_from_text(text_of(warning)));
	*failure = (struct rlmd_error){0};
	json_put(result, "success", json_true());
	json_put(result, "error", json_null());
	json_put(result, "output", json_from_text(spare));
	review_result_take(review, context, spare, result, failure);
	return take_pointer(&warning);
}
