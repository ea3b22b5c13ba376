/*
 * The effect of an operation's end on the others (dependents that start or fail, a race that is
 * won, a smaller budget) happens before anybody is told. An answer is told at once, while it is
 * lent; everything else from the loop, the beginning and a new limit too, one result at a time
 * and always as the last thing done, because whoever is told may free us.
 */
#include "async/execution.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>

#include "async/metrics.h"
#include "async/scheduler.h"
#include "base/abi.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/loop.h"

enum {
	PARALLEL_DEFAULT = 4,
	TIMEOUT_DEFAULT = 30000,      /* ms */
	INPUT_MAX_DEFAULT = 16 << 20, /* bytes */
	INPUTS_MAX = 32 << 20,        /* bytes under way at which no further one starts */
};

void execution_say(const struct rlmd_execution *execution, struct rlmd_plan_event event)
{
	if (!execution->options.on_log)
		return;
	event.size = sizeof event;
	event.strategy = execution->plan->strategy;
	event.count = execution->plan->count;
	event.elapsed_ms = clock_ms() - execution->started;
	execution->options.on_log(execution->options.owner, &event);
}

void execution_log_end(const struct rlmd_execution *execution,
		       const struct rlmd_plan_result *result)
{
	execution_say(execution, (struct rlmd_plan_event){.kind = RLMD_PLAN_EVENT_OPERATION_END,
							  .index = result->index,
							  .id = result->operation->id,
							  .result = result});
}

void execution_pass_time(struct rlmd_execution *execution)
{
	int64_t now = clock_ms();
	size_t slots = execution->limit < execution->open ? execution->limit : execution->open;

	metrics_pass(&execution->metrics, now - execution->changed, execution->running, slots);
	execution->changed = now;
}

/* With nothing left it is one at a time: each is then admitted, or not, by itself. */
static size_t affordable(int64_t remaining, int64_t estimate)
{
	if (remaining == RLMD_PLAN_UNLIMITED)
		return SIZE_MAX;
	if (remaining <= 0)
		return 1;
	if (estimate <= 0)
		return SIZE_MAX;
	return remaining < estimate ? 1 : (size_t)(remaining / estimate);
}

static size_t wanted_parallelism(const struct rlmd_execution *execution)
{
	size_t wanted = execution->config.max_parallel;

	if (execution->plan->strategy == RLMD_PLAN_SEQUENTIAL)
		return 1;
	return wanted < execution->plan->count ? wanted : execution->plan->count;
}

void execution_open_slots(struct rlmd_execution *execution)
{
	size_t under_way = execution->running + execution->waiting;
	bool full = execution->inputs >= INPUTS_MAX && under_way < execution->limit;

	flow_set_limit(scheduler_flow(execution->scheduler), full ? under_way : execution->limit);
}

/* Those that were asked for when there were more slots, and do not run: the last ones first. */
static void put_back(struct rlmd_execution *execution)
{
	while (execution->waiting && execution->running + execution->waiting > execution->limit)
		dispatch_put_back(TAILQ_LAST(&execution->asked, asked));
}

static void set_limit(struct rlmd_execution *execution)
{
	const struct rlmd_budget_manager *budget = &execution->budget;
	size_t wanted = wanted_parallelism(execution), limit;
	int64_t remaining = RLMD_PLAN_UNLIMITED, estimate = 0;

	if (budget->remaining)
		remaining = budget->remaining(budget->owner);
	if (budget->estimate)
		estimate = budget->estimate(budget->owner);
	limit = affordable(remaining, estimate);
	if (limit > wanted)
		limit = wanted;
	if (limit == execution->limit) {
		execution_open_slots(execution);
		return;
	}
	execution_pass_time(execution);
	execution->limit = limit;
	execution_open_slots(execution);
	put_back(execution);
	if (limit == wanted)
		return;
	execution->metrics.budget_limited++;
	execution_say(execution, (struct rlmd_plan_event){.kind = RLMD_PLAN_EVENT_PARALLELISM,
							  .parallel = limit,
							  .wanted = wanted,
							  .budget_remaining = remaining,
							  .budget_estimate = estimate});
}

static void cancel_all(struct rlmd_execution *execution, const char *why)
{
	for (size_t i = 0; i < execution->plan->count; i++)
		dispatch_stop(&execution->calls[i], why);
}

/* Why the plan as a whole has no success. `message` is owned by the execution from now on. */
static void blame(struct rlmd_execution *execution, enum rlmd_plan_error_kind error,
		  const char *name, char *message)
{
	execution->summary.error = error;
	execution->summary.error_name = name;
	execution->summary.message = execution->message = message;
}

/* The losers are closed and counted before the winner is told. */
static void win(struct rlmd_call *call)
{
	struct rlmd_execution *execution = call->execution;
	struct rlmd_plan_result result = dispatch_result(call);
	char name[DISPATCH_LABEL_MAX], why[DISPATCH_LABEL_MAX + 16];

	execution->summary.winner = result.index;
	execution->metrics.races_won++;
	snprintf(why, sizeof why, "%s won the race", dispatch_label(call, name));
	cancel_all(execution, why);
	execution_say(execution, (struct rlmd_plan_event){.kind = RLMD_PLAN_EVENT_WINNER,
							  .index = result.index,
							  .id = result.operation->id,
							  .result = &result});
}

static void fail_fast(struct rlmd_call *call)
{
	struct rlmd_plan_result result = dispatch_result(call);
	char name[DISPATCH_LABEL_MAX], why[DISPATCH_LABEL_MAX + 16];

	dispatch_label(call, name);
	blame(call->execution, result.error, result.error_name,
	      xasprintf("%s failed: %s", name, result.message));
	snprintf(why, sizeof why, "%s failed", name);
	cancel_all(call->execution, why);
}

/* However far: who fell is put aside until it was seen who depends on it, for a chain may be
 * longer than the C stack. */
static void fail_dependents(struct rlmd_call *failed)
{
	struct rlmd_execution *execution = failed->execution;
	SLIST_HEAD(, rlmd_call) fallen = SLIST_HEAD_INITIALIZER(fallen);
	char name[DISPATCH_LABEL_MAX];
	size_t count;

	SLIST_INSERT_HEAD(&fallen, failed, fallen);
	while (!SLIST_EMPTY(&fallen)) {
		struct rlmd_call *call = SLIST_FIRST(&fallen);
		const uint32_t *dependents = plan_others(&execution->plan->dependents,
							 dispatch_index(call), &count);

		SLIST_REMOVE_HEAD(&fallen, fallen);
		dispatch_label(call, name);
		for (size_t i = 0; i < count; i++) {
			struct rlmd_call *dependent = &execution->calls[dependents[i]];

			if (dependent->state != DISPATCH_WAITING)
				continue;
			dispatch_end(dependent, RLMD_PLAN_FAILED, RLMD_PLAN_ERROR_DEPENDENCY,
				     xasprintf("its dependency %s failed", name));
			SLIST_INSERT_HEAD(&fallen, dependent, fallen);
		}
	}
}

static void release_dependents(struct rlmd_call *call)
{
	struct rlmd_execution *execution = call->execution;
	size_t count;
	const uint32_t *dependents = plan_others(&execution->plan->dependents, dispatch_index(call),
						 &count);

	for (size_t i = 0; i < count; i++)
		dispatch_release(&execution->calls[dependents[i]]);
}

static void on_failure(struct rlmd_call *call)
{
	switch (call->execution->config.partial_failure) {
	case RLMD_PLAN_FAIL_FAST:
		fail_fast(call);
		return;
	case RLMD_PLAN_CONTINUE_ON_ERROR:
		dispatch_respond_with_error(call);
		release_dependents(call);
		return;
	case RLMD_PLAN_FAIL_DEPENDENTS:
		break;
	}
	fail_dependents(call);
}

static void conclude(struct rlmd_execution *execution)
{
	execution->summary.duration_ms = clock_ms() - execution->started;
	execution->finished = true;
}

static void lose(struct rlmd_call *last)
{
	struct rlmd_execution *execution = last->execution;
	char name[DISPATCH_LABEL_MAX];

	blame(execution, RLMD_PLAN_ERROR_ALL_FAILED,
	      rlmd_plan_error_name(RLMD_PLAN_ERROR_ALL_FAILED),
	      xasprintf("all %zu alternatives failed; the last, %s: %s", execution->plan->count,
			dispatch_label(last, name), last->message));
}

static void post(struct rlmd_execution *execution)
{
	if (!execution->notified && (!TAILQ_EMPTY(&execution->untold) || execution->finished))
		loop_post(execution->tell);
}

void execution_on_end(struct rlmd_call *call)
{
	struct rlmd_execution *execution = call->execution;
	bool succeeded = call->status == RLMD_PLAN_SUCCEEDED;

	if (execution->plan->strategy == RLMD_PLAN_SPECULATIVE) {
		if (succeeded)
			win(call);
		else if (!execution->open)
			lose(call);
	} else if (succeeded) {
		release_dependents(call);
	} else {
		on_failure(call);
	}
	if (execution->open)
		set_limit(execution);
	else
		conclude(execution);
	post(execution);
}

void execution_tell(struct rlmd_execution *execution, const struct rlmd_plan_result *result)
{
	post(execution);
	if (execution->options.on_result)
		execution->options.on_result(execution->options.owner, result);
}

static void tell_end(struct rlmd_execution *execution)
{
	struct rlmd_plan_summary summary = execution->summary;

	execution->notified = true;
	execution_say(execution,
		      (struct rlmd_plan_event){.kind = RLMD_PLAN_EVENT_END, .summary = &summary});
	if (execution->options.on_done)
		execution->options.on_done(execution->options.owner, &summary);
}

static void begin(struct rlmd_execution *execution)
{
	execution->begun = true;
	execution_say(execution, (struct rlmd_plan_event){.kind = RLMD_PLAN_EVENT_START,
							  .wanted = wanted_parallelism(execution)});
	if (execution->finished)
		return;
	set_limit(execution);
	for (size_t i = 0; i < execution->plan->count; i++)
		if (!execution->calls[i].missing)
			dispatch_line_up(&execution->calls[i]);
}

/* Work that functions of the header have put off, as they must not call back. */
static void catch_up(struct rlmd_execution *execution)
{
	bool resized = execution->resized && execution->begun && !execution->finished;

	execution->resized = false;
	if (!execution->begun)
		begin(execution);
	else if (resized)
		set_limit(execution);
}

static void on_tell(evutil_socket_t fd, short what, void *owner)
{
	struct rlmd_execution *execution = owner;
	struct rlmd_call *call = TAILQ_FIRST(&execution->untold);
	struct rlmd_plan_result result;

	(void)fd;
	(void)what;
	catch_up(execution);
	if (call) {
		TAILQ_REMOVE(&execution->untold, call, entry);
		result = dispatch_result(call);
		if (call->unlogged)
			execution_log_end(execution, &result);
		execution_tell(execution, &result);
	} else if (execution->finished && !execution->notified) {
		tell_end(execution);
	}
}

static struct rlmd_plan_config with_defaults(struct rlmd_plan_config config)
{
	if (!config.max_parallel)
		config.max_parallel = PARALLEL_DEFAULT;
	if (!config.timeout_ms)
		config.timeout_ms = TIMEOUT_DEFAULT;
	if (!config.input_max)
		config.input_max = INPUT_MAX_DEFAULT;
	return config;
}

/* Copies the options and the structs that they point to. */
static bool take_options(struct rlmd_execution *execution,
			 const struct rlmd_execution_options *given, struct rlmd_error *err)
{
	struct rlmd_execution_options *options = &execution->options;

	if (!abi_copy_in(options, sizeof *options, given, sizeof *options, "rlmd_execution_options",
			 err) ||
	    !abi_copy_in(&execution->config, sizeof execution->config, options->config,
			 sizeof execution->config, "rlmd_plan_config", err) ||
	    !abi_copy_in(&execution->orchestrator, sizeof execution->orchestrator,
			 options->orchestrator, sizeof execution->orchestrator, "rlmd_orchestrator",
			 err) ||
	    !abi_copy_in(&execution->budget, sizeof execution->budget, options->budget,
			 sizeof execution->budget, "rlmd_budget_manager", err))
		return false;
	execution->config = with_defaults(execution->config);
	options->config = NULL;
	options->orchestrator = NULL;
	options->budget = NULL;
	return execution->orchestrator.start ||
	       error_set(err, RLMD_ERROR_USAGE, "the orchestrator has no start()");
}

struct rlmd_execution *rlmd_execution_start(struct event_base *base, const struct rlmd_plan *plan,
					    const struct rlmd_execution_options *options,
					    struct rlmd_error *err)
{
	struct rlmd_execution taken = {.plan = plan, .base = base}, *execution;

	if (!base || !plan || !options) {
		error_set(err, RLMD_ERROR_USAGE, "an execution needs a base, a plan and options");
		return NULL;
	}
	if (!take_options(&taken, options, err))
		return NULL;
	execution = xcalloc(1, sizeof *execution);
	*execution = taken;
	execution->calls = xcalloc(plan->count, sizeof *execution->calls);
	execution->scheduler = scheduler_new(base, 0);
	execution->open = plan->count;
	execution->started = execution->changed = clock_ms();
	execution->summary = (struct rlmd_plan_summary){
		.size = sizeof execution->summary,
		.message = "",
		.error_name = rlmd_plan_error_name(RLMD_PLAN_OK),
		.winner = RLMD_PLAN_NOBODY,
		.metrics = &execution->metrics,
	};
	execution->tell = loop_event(base, -1, 0, on_tell, execution);
	TAILQ_INIT(&execution->asked);
	TAILQ_INIT(&execution->untold);
	for (size_t i = 0; i < plan->count; i++)
		dispatch_init(&execution->calls[i], execution);
	execution->metrics.executions[plan->strategy] = 1;
	execution->metrics.races = plan->strategy == RLMD_PLAN_SPECULATIVE;
	event_active(execution->tell, 0, 0);
	return execution;
}

void rlmd_execution_stop(struct rlmd_execution *execution)
{
	if (!execution || execution->finished)
		return;
	blame(execution, RLMD_PLAN_ERROR_CANCELLED, rlmd_plan_error_name(RLMD_PLAN_ERROR_CANCELLED),
	      xstrdup("cancelled"));
	execution->quiet = true;
	cancel_all(execution, execution->message);
	execution->quiet = false;
	conclude(execution);
	post(execution);
}

void rlmd_execution_free(struct rlmd_execution *execution)
{
	if (!execution)
		return;
	for (size_t i = 0; i < execution->plan->count; i++)
		dispatch_drop(&execution->calls[i]);
	event_free(execution->tell);
	scheduler_free(execution->scheduler);
	free(execution->calls);
	free(execution->message);
	free(execution);
}

void rlmd_execution_set_max_parallel(struct rlmd_execution *execution, size_t max_parallel)
{
	if (!execution)
		return;
	execution->config.max_parallel = max_parallel;
	execution->config = with_defaults(execution->config);
	if (execution->finished)
		return;
	execution->resized = true;
	event_active(execution->tell, 0, 0);
}

void rlmd_execution_set_timeout(struct rlmd_execution *execution, int64_t ms)
{
	if (!execution)
		return;
	execution->config.timeout_ms = ms;
	execution->config = with_defaults(execution->config);
}

void rlmd_execution_set_partial_failure(struct rlmd_execution *execution,
					enum rlmd_plan_failure partial_failure)
{
	if (execution)
		execution->config.partial_failure = partial_failure;
}

size_t rlmd_execution_parallelism(const struct rlmd_execution *execution)
{
	return execution ? execution->limit : 0;
}

bool rlmd_execution_result(const struct rlmd_execution *execution, size_t index,
			   struct rlmd_plan_result *ret)
{
	struct rlmd_plan_result result;

	if (!execution || index >= execution->plan->count)
		return false;
	result = dispatch_result(&execution->calls[index]);
	return abi_copy_out(ret, &result, sizeof result, sizeof result);
}

struct rlmd_plan_summary execution_summary(const struct rlmd_execution *execution)
{
	struct rlmd_plan_summary summary = execution->summary;

	if (!execution->finished)
		summary.duration_ms = clock_ms() - execution->started;
	return summary;
}

bool rlmd_execution_summary(const struct rlmd_execution *execution, struct rlmd_plan_summary *ret)
{
	struct rlmd_plan_summary summary;

	if (!execution)
		return false;
	summary = execution_summary(execution);
	return abi_copy_out(ret, &summary, sizeof summary, sizeof summary);
}

const struct rlmd_plan *rlmd_execution_plan(const struct rlmd_execution *execution)
{
	return execution ? execution->plan : NULL;
}
