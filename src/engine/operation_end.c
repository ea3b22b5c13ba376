#include "engine/operation_end.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "budget/budget.h"
#include "engine/caller.h"
#include "engine/job.h"
#include "engine/operation_set.h"
#include "trace/record.h"

void operation_fail(struct operation *operation, const struct rlmd_error *err)
{
	operation->failed = true;
	operation->error = err->kind;
	operation->value = xstrdup(err->text);
	operation->value_size = strlen(operation->value);
}

/* Answers are in memory until the call is over. */
static bool has_room(struct operation *operation, size_t size)
{
	struct operation_set *set = operation->set;
	struct caller *caller = set->caller;
	struct rlmd_error err;

	if (size <= caller->answers_max - caller->answers) {
		caller->answers += size;
		set->answers += size;
		return true;
	}
	error_set(&err, RLMD_ERROR_INPUT,
		  "the answers that are waited for may have %zu MiB together, which this one, of "
		  "%zu bytes, exceeds",
		  caller->answers_max >> 20, size);
	operation_fail(operation, &err);
	return false;
}

void operation_degrade(struct operation *operation, char *why)
{
	char *before = operation->degraded;

	operation->degraded = why;
	if (!before)
		return;
	operation->degraded = xasprintf("%s; %s", before, why);
	free(before);
	free(why);
}

void operation_note_cut(struct operation *operation, bool cut)
{
	if (cut)
		operation_degrade(operation, xstrdup("cut at its length limit"));
}

void operation_note_fallback(struct operation *operation)
{
	switch (operation->way) {
	case WAY_SUBRUN:
		return;
	case WAY_DOWNGRADED:
		operation_degrade(operation,
				  xasprintf("downgraded to llm_query (%s)", operation->reason));
		return;
	case WAY_DIRECT:
		operation_degrade(operation,
				  xasprintf("no sub-RLM was started (%s), answered directly",
					    operation->reason));
		return;
	}
}

static void record_answered(const struct operation *operation)
{
	const struct caller *caller = operation->set->caller;

	if (operation->degraded && !operation->failed)
		record_degraded(caller->job->trace, caller->id,
				operation->spec->mode == RLMD_OPERATION_RUN, operation->degraded);
}

void operation_answer(struct operation *operation, struct rlmd_text text)
{
	auto_evbuffer struct evbuffer *repaired = NULL;

	if (!text_is_utf8(text)) {
		repaired = evbuffer_new();
		text_repair(text, repaired);
		text = text_in(repaired);
	}
	if (has_room(operation, text.size)) {
		operation->value = text_copy(text);
		operation->value_size = text.size;
	}
	record_answered(operation);
}

void operation_take_answer(struct operation *operation, const struct llm_response *response)
{
	if (!response->bytes) {
		operation_answer(operation, response->text);
		return;
	}
	if (has_room(operation, response->text.size)) {
		operation->value = bytes_take(response->bytes);
		operation->value_size = response->text.size;
	}
	record_answered(operation);
}

/* A call that had to end with the account's time is refused by the account. */
static enum rlmd_error_kind kind_of(const struct operation *operation)
{
	bool over = !budget_remaining_ms(operation->set->caller->budget);

	return operation->error == RLMD_ERROR_TIMEOUT && over ? RLMD_ERROR_BUDGET
							      : operation->error;
}

static enum rlmd_plan_error_kind plan_error(enum rlmd_error_kind kind)
{
	if (kind == RLMD_ERROR_TIMEOUT)
		return RLMD_PLAN_ERROR_TIMEOUT;
	return kind == RLMD_ERROR_BUDGET ? RLMD_PLAN_ERROR_BUDGET : RLMD_PLAN_ERROR_OPERATION;
}

void operation_end(struct operation *operation)
{
	struct operation_set *set = operation->set;
	auto_free char *unkept = set->keep ? take_pointer(&operation->value) : NULL;
	const char *value = set->keep ? unkept : operation->value;
	struct rlmd_plan_answer answer = {.usage = operation->usage};

	if (operation->usage.tokens) {
		set->ended++;
		set->tokens += operation->usage.tokens;
	}
	if (operation->failed) {
		answer.error = plan_error(kind_of(operation));
		answer.error_name = rlmd_error_name(kind_of(operation));
		answer.message = value;
	} else {
		answer.response = (struct rlmd_text){value, operation->value_size};
	}
	rlmd_call_done(operation->call, &answer);
}
