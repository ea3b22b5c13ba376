#include "engine/learning.h"

#include <inttypes.h>
#include <stdio.h>

#include "budget/estimator.h"
#include "engine/caller.h"
#include "engine/job.h"

/* A provider that does not keep to max_tokens; once. */
static void tell_overrun(struct caller *caller, const struct llm_request *request,
			 const struct llm_response *response)
{
	const char *words = response->overlong ? "sent more output than max_tokens (about "
					       : "billed more output than max_tokens (";
	char text[160];

	if (caller->job->overrun)
		return;
	caller->job->overrun = true;
	snprintf(text, sizeof text, "The provider %s%" PRId64 " of %" PRId64 " tokens)%s", words,
		 response->usage.output, request->max_tokens,
		 response->overlong ? ": its answer was cut off there" : "");
	caller_warn_once(caller, text);
}

/* Of several attempts only the sum is known, and of an estimate nothing is to be learned; but that
 * of an answer that was cut for its length is no more than what came. */
void learning_take(struct caller *caller, const struct llm_request *request,
		   const struct token_counts *counts, const struct llm_response *response)
{
	const struct llm_usage *usage = &response->usage;
	struct estimator *estimator;

	if (response->overlong)
		tell_overrun(caller, request, response);
	if (response->cached || response->journaled || response->billed > 1 ||
	    (usage->estimated && !response->overlong))
		return;
	estimator = estimators_learn(caller->job->estimators, request->model);
	if (!usage->estimated)
		estimator_learn_text(estimator, counts, usage->input);
	estimator_learn_output(estimator, estimators_use(request->kind), request->max_tokens,
			       usage->output);
	if (usage->output > request->max_tokens)
		tell_overrun(caller, request, response);
}
