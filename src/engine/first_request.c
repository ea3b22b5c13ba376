#include "engine/first_request.h"

#include "base/cleanup.h"
#include "engine/reserve.h"
#include "prompt/brief.h"

static void say(const struct rlmd_job *job, const struct brief *brief, struct budget *budget,
		struct conversation *conversation)
{
	auto_evbuffer struct evbuffer *code = evbuffer_new();
	struct draft draft = draft_new(), look = draft_new();
	struct reserve reserve;

	brief_system(brief, NULL, &draft);
	draft_say(&draft, LLM_SYSTEM, conversation);
	reserve_set(&reserve, job, budget, job->model,
		    brief_forced_size(brief, estimators_look(job->estimators, job->model)));
	if (brief_demonstration(brief, code, &look)) {
		brief_opening(brief, &draft);
		draft_say(&draft, LLM_USER, conversation);
		draft_say(&look, LLM_ASSISTANT, conversation);
		budget_count_iteration(budget);
		brief_first_turn(brief, text_of("(what the block prints)"), &draft);
	} else {
		budget_count_iteration(budget);
		brief_first_turn_bare(brief, &draft);
	}
	draft_say(&draft, LLM_USER, conversation);
	reserve_drop(&reserve);
	draft_free(&draft);
	draft_free(&look);
}

void first_request(struct conversation *conversation, const struct rlmd_job *job,
		   const struct context *context, struct rlmd_text task)
{
	struct budget *budget = budget_new(&job->config.limits, NULL, NULL);
	struct brief brief = {
		.facts = job_facts(job),
		.prompts = job->prompts,
		.budget = budget,
		.context = context,
		.task = task,
		.turn = 1,
	};

	say(job, &brief, budget, conversation);
	budget_free(budget);
}

int64_t first_request_tokens(const struct conversation *conversation)
{
	int64_t tokens = 0;

	for (size_t i = 0; i < conversation->count; i++)
		tokens += text_tokens(conversation->messages[i].text);
	return tokens;
}
