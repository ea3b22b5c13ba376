#include "engine/errand.h"

#include <stdlib.h>

#include "async/report.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "budget/budget.h"
#include "engine/caller.h"
#include "engine/job.h"

/* What an operation is taken to cost until one has ended; tokens. */
enum { CALL_TOKENS = 2500, RUN_TOKENS = 5 * CALL_TOKENS };

static bool is_task(const struct rlmd_operation *operation)
{
	return operation->mode == RLMD_OPERATION_RUN;
}

void errand_init(struct errand *errand, struct caller *caller, struct rlmd_operation *operations,
		 size_t count)
{
	errand->caller = caller;
	errand->operations = operations;
	errand->count = count;
	errand->slots = xcalloc(count, sizeof *errand->slots);
	for (size_t i = 0; i < count; i++) {
		struct slot *slot = &errand->slots[i];

		operations[i].owner = slot;
		slot->errand = errand;
		slot->operation = &operations[i];
		slot->wanting = is_task(&operations[i]);
		errand->tasks += slot->wanting;
	}
	if (errand->tasks)
		admission_init(&errand->admission, caller, errand->tasks, count - errand->tasks);
}

static void start(void *owner, const struct rlmd_operation *operation, struct rlmd_text input,
		  struct rlmd_call *call)
{
	(void)owner;
	slot_start(operation->owner, input, call);
}

static void cancel(void *owner, const struct rlmd_operation *operation, struct rlmd_call *call,
		   struct rlmd_plan_usage *ret_usage)
{
	struct slot *slot = operation->owner;

	(void)owner;
	(void)call;
	slot_cancel(slot);
	*ret_usage = slot->usage;
}

static int64_t remaining(void *owner)
{
	const struct errand *errand = owner;
	const struct budget *budget = errand->caller->budget;
	int64_t limit;

	if (errand->admission.aside && errand->tasks == errand->count)
		budget = errand->admission.aside;
	limit = budget_limits(budget)->tokens;
	return limit == BUDGET_UNLIMITED ? RLMD_PLAN_UNLIMITED
					 : limit - budget_usage(budget)->tokens;
}

static int64_t estimate(void *owner)
{
	const struct errand *errand = owner;

	if (errand->ended)
		return errand->tokens / errand->ended;
	return errand->tasks ? RUN_TOKENS : CALL_TOKENS;
}

/* It may have ended without a start, and then its share is for others. */
static void on_result(void *owner, const struct rlmd_plan_result *result)
{
	struct slot *slot = result->operation->owner;
	struct errand *errand = slot->errand;

	if (slot->wanting)
		admission_decline(&errand->admission);
	slot->wanting = false;
	if (!is_task(result->operation) && errand->admission.calls)
		errand->admission.calls--;
	if (errand->keep)
		slot_done(slot);
	if (errand->on_result)
		errand->on_result(owner, result);
}

/* Of model calls no more than may be in flight: what would wait for its place had better do so
 * where priorities are known. */
static void limit_calls(const struct errand *errand, struct rlmd_plan_config *config)
{
	size_t most = (size_t)errand->caller->job->config.max_parallel;

	if (!errand->tasks && config->max_parallel > most)
		config->max_parallel = most;
}

void errand_start(struct errand *errand, const struct rlmd_plan *plan,
		  struct rlmd_execution_options options)
{
	options.orchestrator = (struct rlmd_orchestrator){start, cancel, errand, true};
	options.budget = (struct rlmd_budget_manager){remaining, estimate, NULL, errand};
	limit_calls(errand, &options.config);
	errand->keep = options.keep;
	errand->on_result = options.on_result;
	options.on_result = on_result;
	errand->execution = rlmd_execution_start(errand->caller->job->base, plan, &options);
}

json_t *errand_report(const struct errand *errand)
{
	json_t *report = report_execution(errand->execution);
	json_t *results = json_object_get(report, "results");

	for (size_t i = 0; i < errand->count; i++)
		if (errand->slots[i].degraded && !errand->slots[i].failed)
			json_object_set_new(json_object_get(results, errand->operations[i].id),
					    "degraded", json_string(errand->slots[i].degraded));
	return report;
}

void errand_settle(struct errand *errand)
{
	admission_done(&errand->admission);
}

void errand_done(struct errand *errand)
{
	rlmd_execution_free(errand->execution);
	for (size_t i = 0; i < errand->count; i++) {
		slot_done(&errand->slots[i]);
		free(errand->slots[i].degraded); /* which the report of a plan has needed */
	}
	admission_done(&errand->admission);
	if (errand->caller)
		errand->caller->answers -= errand->answers;
	free(errand->slots);
	*errand = (struct errand){0};
}

/* A call that had to end with the account's time is refused by the account. */
static enum rlmd_error_kind kind_of(const struct slot *slot)
{
	bool over = !budget_remaining_ms(slot->errand->caller->budget);

	return slot->error == RLMD_ERROR_TIMEOUT && over ? RLMD_ERROR_BUDGET : slot->error;
}

static enum rlmd_plan_error_kind plan_error(enum rlmd_error_kind kind)
{
	if (kind == RLMD_ERROR_TIMEOUT)
		return RLMD_PLAN_ERROR_TIMEOUT;
	return kind == RLMD_ERROR_BUDGET ? RLMD_PLAN_ERROR_BUDGET : RLMD_PLAN_ERROR_OPERATION;
}

void errand_on_slot(struct slot *slot)
{
	struct errand *errand = slot->errand;
	auto_free char *unkept = errand->keep ? take_pointer(&slot->value) : NULL;
	const char *value = errand->keep ? unkept : slot->value;
	struct rlmd_plan_answer answer = {.usage = slot->usage};

	if (slot->usage.tokens) {
		errand->ended++;
		errand->tokens += slot->usage.tokens;
	}
	if (slot->failed) {
		answer.error = plan_error(kind_of(slot));
		answer.error_name = rlmd_error_name(kind_of(slot));
		answer.message = value;
	} else {
		answer.response = (struct rlmd_text){value, slot->value_size};
	}
	rlmd_call_done(slot->call, &answer);
}
