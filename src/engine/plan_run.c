#include "engine/plan_run.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "engine/caller.h"
#include "engine/errand.h"
#include "engine/room.h"
#include "trace/record.h"
#include "trace/result.h"

enum { ANSWERS_MAX = 512 << 20 }; /* bytes of all responses together, which the result holds */

struct plan_run {
	struct room room;
	struct engine_config config; /* its strings are lent */
	struct caller caller;
	struct context context; /* none: of operations that bring none */
	char id[37];
	struct budget *budget; /* owned */
	struct errand errand;
	bool tolerant; /* an operation that fails is no failure of the plan */
	bool stopped;
	struct rlmd_error
		failed; /* the first operation that did, but for those that it took with it */
	engine_event_fn *event;
	plan_run_done_fn *done;
	void *owner;
	int64_t started;
};

static void on_trace(void *owner, json_t *event)
{
	struct plan_run *plan_run = owner;

	if (plan_run->event)
		plan_run->event(plan_run->owner, event);
}

static void on_budget_warning(void *owner, const char *text)
{
	struct plan_run *plan_run = owner;

	caller_warn(&plan_run->caller, text);
}

static void on_log(void *owner, const struct rlmd_plan_event *event)
{
	struct plan_run *plan_run = owner;

	record_plan(plan_run->room.trace, plan_run->id, event);
}

static enum rlmd_error_kind kind_of(const struct rlmd_plan_result *result)
{
	const struct slot *slot = result->operation->owner;

	switch (result->error) {
	case RLMD_PLAN_ERROR_TIMEOUT:
		return RLMD_ERROR_TIMEOUT;
	case RLMD_PLAN_ERROR_BUDGET:
		return RLMD_ERROR_BUDGET;
	case RLMD_PLAN_ERROR_INPUT:
	case RLMD_PLAN_ERROR_PLAN:
		return RLMD_ERROR_INPUT;
	case RLMD_PLAN_ERROR_OPERATION:
		return slot->error;
	case RLMD_PLAN_OK:
	case RLMD_PLAN_ERROR_CANCELLED:
	case RLMD_PLAN_ERROR_DEPENDENCY:
	case RLMD_PLAN_ERROR_ALL_FAILED:
		break;
	}
	return RLMD_ERROR_NONE;
}

static void on_result(void *owner, const struct rlmd_plan_result *result)
{
	struct plan_run *plan_run = owner;
	enum rlmd_error_kind kind = kind_of(result);

	if (!plan_run->failed.kind && kind)
		error_set(&plan_run->failed, kind, "operation \"%s\" failed: %s",
			  result->operation->id, result->message);
}

/* One success is enough of alternatives, and where errors are no reason to stop. */
static struct rlmd_error failure_of(const struct plan_run *plan_run,
				    const struct rlmd_plan_summary *summary)
{
	struct rlmd_error err = {0};

	if (summary->error == RLMD_PLAN_ERROR_CANCELLED)
		error_set(&err, RLMD_ERROR_CANCELLED, "the plan was cancelled");
	else if (summary->error == RLMD_PLAN_ERROR_ALL_FAILED)
		error_set(&err, plan_run->failed.kind, "%s", summary->message);
	else if (summary->winner == RLMD_PLAN_NOBODY && !(plan_run->tolerant && summary->succeeded))
		err = plan_run->failed;
	return err;
}

static json_t *warnings_of(const struct plan_run *plan_run)
{
	json_t *warnings = json_copy(plan_run->caller.warnings);
	json_t *more = llm_take_warnings(plan_run->room.llm);

	json_array_extend(warnings, more);
	json_decref(more);
	return warnings;
}

static json_t *result_object(const struct plan_run *plan_run)
{
	const struct room *room = &plan_run->room;
	json_t *object = errand_report(&plan_run->errand);

	json_object_set_new(object, "event", json_string("result"));
	json_object_set_new(object, "usage", result_usage(plan_run->budget));
	json_object_set_new(object, "warnings", warnings_of(plan_run));
	json_object_set_new(object, "sandbox",
			    room->sandbox ? sandbox_report(room->sandbox) : json_null());
	json_object_set_new(object, "model", json_from_text(text_of(room->model)));
	json_object_set_new(object, "provider", json_string(llm_provider(room->llm)));
	json_object_set_new(object, "priceTable", json_string(llm_price_date(room->llm)));
	return object;
}

static void on_done(void *owner, const struct rlmd_plan_summary *summary)
{
	struct plan_run *plan_run = owner;
	struct plan_run_result result = {
		.error = failure_of(plan_run, summary),
		.metrics = &summary->metrics,
	};

	errand_settle(&plan_run->errand);
	result.failure = result.error.kind;
	result.object = result_object(plan_run);
	trace_event(plan_run->room.trace, json_incref(result.object));
	plan_run->done(plan_run->owner, &result);
	json_decref(result.object);
}

static struct caller caller_of(struct plan_run *plan_run)
{
	return (struct caller){
		.room = &plan_run->room,
		.id = plan_run->id,
		.budget = plan_run->budget,
		.context = &plan_run->context,
		.model = plan_run->room.model,
		.depth = -1,
		.answers_max = ANSWERS_MAX,
		.warnings = json_array(),
	};
}

static void start(struct plan_run *plan_run, struct rlmd_plan_file *file)
{
	const struct rlmd_plan *plan = rlmd_plan_file_plan(file);
	struct rlmd_execution_options options = {
		.config = *rlmd_plan_file_config(file),
		.keep = true,
		.on_result = on_result,
		.on_log = on_log,
		.on_done = on_done,
		.owner = plan_run,
	};

	if (!options.config.max_parallel)
		options.config.max_parallel = (size_t)plan_run->config.max_parallel;
	plan_run->tolerant = options.config.partial_failure == RLMD_PLAN_CONTINUE_ON_ERROR;
	errand_init(&plan_run->errand, &plan_run->caller, rlmd_plan_file_operations(file),
		    rlmd_plan_count(plan));
	errand_start(&plan_run->errand, plan, options);
}

struct plan_run *plan_run_start(struct event_base *base, struct sandbox *sandbox, struct llm *llm,
				const struct engine_config *config, struct rlmd_plan_file *file,
				engine_event_fn *event, plan_run_done_fn *done, void *owner)
{
	struct plan_run *plan_run = xcalloc(1, sizeof *plan_run);

	*plan_run = (struct plan_run){
		.config = *config,
		.event = event,
		.done = done,
		.owner = owner,
		.started = clock_ms(),
	};
	room_init(&plan_run->room, base, sandbox, llm, &plan_run->config);
	room_open(&plan_run->room, false, on_trace, plan_run);
	trace_uuid(plan_run->id);
	plan_run->budget = budget_new(&plan_run->config.limits, on_budget_warning, plan_run);
	plan_run->caller = caller_of(plan_run);
	start(plan_run, file);
	return plan_run;
}

void plan_run_stop(struct plan_run *plan_run)
{
	plan_run->stopped = true;
	rlmd_execution_stop(plan_run->errand.execution);
}

void plan_run_free(struct plan_run *plan_run)
{
	if (!plan_run)
		return;
	errand_done(&plan_run->errand);
	budget_free(plan_run->budget);
	caller_done(&plan_run->caller);
	room_close(&plan_run->room);
	free(plan_run);
}

struct engine_status plan_run_status(const struct plan_run *plan_run)
{
	const struct budget_usage *usage = budget_usage(plan_run->budget);

	return (struct engine_status){
		.depth = room_deepest(&plan_run->room),
		.calls_in_flight = plan_run->room.calls_in_flight,
		.tokens = usage->tokens,
		.cost = usage->cost,
		.elapsed_ms = clock_ms() - plan_run->started,
		.max_cost = plan_run->config.limits.cost,
		.interrupted = plan_run->stopped,
	};
}
