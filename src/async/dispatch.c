/*
 * One operation of a plan under way:
 *
 *   WAITING -> LINED    dispatch_line_up     the last of its dependencies has ended
 *   LINED -> ASKED      ask                  it is its turn: the orchestrator has it
 *   ASKED -> LINED      dispatch_put_back    fewer may run than before, and it does not yet
 *   ASKED -> RUNNING    rlmd_call_started    the orchestrator has what it waited for
 *   any -> ENDED        dispatch_end         it was answered, or cannot be any more
 *
 * The receiver of a result may free the execution, and so may an orchestrator that
 * answers from inside start(): both are the last thing done.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "async/execution.h"
#include "async/metrics.h"
#include "async/scheduler.h"
#include "async/substitute.h"
#include "base/abi.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/timer.h"

enum { MESSAGE_MAX = 4096 }; /* bytes of a foreign error's text that are kept */

void dispatch_init(struct rlmd_call *call, struct rlmd_execution *execution)
{
	const struct rlmd_plan *plan = execution->plan;
	size_t needs, dependents;

	call->execution = execution;
	plan_others(&plan->dependencies, dispatch_index(call), &needs);
	plan_others(&plan->dependents, dispatch_index(call), &dependents);
	call->missing = plan->ordered ? (uint32_t)needs : 0;
	call->holders = (uint32_t)dependents;
}

const char *dispatch_label(const struct rlmd_call *call, char out[static DISPATCH_LABEL_MAX])
{
	const char *id = dispatch_operation(call)->id;

	if (id)
		snprintf(out, DISPATCH_LABEL_MAX, "\"%s\"", id);
	else
		snprintf(out, DISPATCH_LABEL_MAX, "operations[%zu]", dispatch_index(call));
	return out;
}

struct rlmd_plan_result dispatch_result(const struct rlmd_call *call)
{
	bool has_response = call->status == RLMD_PLAN_SUCCEEDED && call->response;
	const char *name = call->error_name;

	return (struct rlmd_plan_result){
		.size = sizeof(struct rlmd_plan_result),
		.operation = dispatch_operation(call),
		.index = dispatch_index(call),
		.status = call->status,
		.error = call->error,
		.error_name = name ? name : rlmd_plan_error_name(call->error),
		.message = call->message ? call->message : "",
		.response = {has_response ? call->response : "",
			     has_response ? call->response_size : 0},
		.tokens = call->tokens,
		.estimated = call->estimated,
		.duration_ms = call->duration,
	};
}

static void forget_response(struct rlmd_call *call)
{
	free(call->response);
	call->response = NULL;
	call->response_size = 0;
}

/* Our dependencies' responses are not read for us any more. */
static void let_go(struct rlmd_call *call)
{
	struct rlmd_execution *execution = call->execution;
	size_t count;
	const uint32_t *needs = plan_others(&execution->plan->dependencies, dispatch_index(call),
					    &count);

	if (!execution->plan->ordered)
		return;
	for (size_t i = 0; i < count; i++) {
		struct rlmd_call *need = &execution->calls[needs[i]];

		if (!--need->holders && !execution->options.keep)
			forget_response(need);
	}
}

static void count_end(struct rlmd_execution *execution, const struct rlmd_plan_result *result)
{
	struct rlmd_plan_summary *summary = &execution->summary;

	summary->succeeded += result->status == RLMD_PLAN_SUCCEEDED;
	summary->failed += result->status == RLMD_PLAN_FAILED;
	summary->cancelled += result->status == RLMD_PLAN_CANCELLED;
	summary->tokens = metrics_sum(summary->tokens, result->tokens);
	summary->estimated |= result->estimated;
	metrics_count(&execution->metrics, result);
}

static void forget_input(struct rlmd_call *call)
{
	if (call->input)
		call->execution->inputs -= call->input_text.size;
	free(call->input);
	call->input = NULL;
}

static void put_down(struct rlmd_call *call)
{
	timer_free(call->timer);
	permit_free(call->permit);
	forget_input(call);
	call->timer = NULL;
	call->permit = NULL;
}

static void wait_no_more(struct rlmd_call *call)
{
	if (call->state != DISPATCH_ASKED)
		return;
	TAILQ_REMOVE(&call->execution->asked, call, entry);
	call->execution->waiting--;
}

void dispatch_end(struct rlmd_call *call, enum rlmd_plan_status status,
		  enum rlmd_plan_error_kind error, char *message)
{
	struct rlmd_execution *execution = call->execution;
	struct rlmd_plan_result result;

	execution_pass_time(execution);
	if (call->state == DISPATCH_RUNNING) {
		call->duration = clock_ms() - call->started;
		execution->running--;
	}
	wait_no_more(call);
	call->state = DISPATCH_ENDED;
	call->status = status;
	call->error = error;
	call->message = message;
	put_down(call);
	let_go(call);
	execution->open--;
	TAILQ_INSERT_TAIL(&execution->untold, call, entry);
	result = dispatch_result(call);
	count_end(execution, &result);
	call->unlogged = execution->quiet;
	if (!call->unlogged)
		execution_log_end(execution, &result);
}

static void take_usage(struct rlmd_call *call, int64_t tokens, bool estimated)
{
	call->tokens = tokens > 0 ? tokens : 0;
	call->estimated = estimated;
}

/* The transfer, or whatever it is, is over before this returns, and paid for. An orchestrator
 * that answers from in here is not heard. */
static void withdraw(struct rlmd_call *call)
{
	struct rlmd_execution *execution = call->execution;
	const struct rlmd_orchestrator *orchestrator = &execution->orchestrator;
	struct rlmd_plan_usage usage = {.size = sizeof usage};

	if (call->state != DISPATCH_RUNNING && call->state != DISPATCH_ASKED)
		return;
	execution->deaf = true;
	if (orchestrator->cancel)
		orchestrator->cancel(orchestrator->owner, dispatch_operation(call), call, &usage);
	execution->deaf = false;
	take_usage(call, usage.tokens, usage.estimated);
}

void dispatch_stop(struct rlmd_call *call, const char *why)
{
	if (call->state == DISPATCH_ENDED)
		return;
	withdraw(call);
	dispatch_end(call, RLMD_PLAN_CANCELLED, RLMD_PLAN_ERROR_CANCELLED, xstrdup(why));
}

void dispatch_put_back(struct rlmd_call *call)
{
	withdraw(call);
	wait_no_more(call);
	forget_input(call);
	call->state = DISPATCH_LINED;
	permit_return(call->permit);
}

void dispatch_drop(struct rlmd_call *call)
{
	withdraw(call);
	put_down(call);
	forget_response(call);
	free(call->message);
}

void dispatch_respond_with_error(struct rlmd_call *call)
{
	if (!call->holders || !call->execution->plan->quoted[dispatch_index(call)])
		return;
	call->response = xasprintf("Error: %s", call->message);
	call->response_size = strlen(call->response);
}

static void fail(struct rlmd_call *call, enum rlmd_plan_error_kind error, char *message)
{
	dispatch_end(call, RLMD_PLAN_FAILED, error, message);
	execution_on_end(call);
}

static bool admit(struct rlmd_call *call)
{
	const struct rlmd_budget_manager *budget = &call->execution->budget;
	const char *reason = NULL;

	if (!budget->admit || budget->admit(budget->owner, dispatch_operation(call), &reason))
		return true;
	fail(call, RLMD_PLAN_ERROR_BUDGET, xstrdup(reason ? reason : "the budget is exhausted"));
	return false;
}

static struct rlmd_text response_to(void *owner, struct rlmd_text id)
{
	const struct rlmd_execution *execution = owner;
	const struct rlmd_call *call = &execution->calls[plan_find(execution->plan, id)];

	return (struct rlmd_text){call->response, call->response_size};
}

static bool fill_in(struct rlmd_call *call)
{
	struct rlmd_execution *execution = call->execution;
	size_t max = execution->config.input_max, size;

	call->input_text = dispatch_operation(call)->input;
	if (!execution->plan->filled[dispatch_index(call)])
		return true;
	call->input = substitute(call->input_text, max, response_to, execution, &size);
	if (call->input) {
		call->input_text = (struct rlmd_text){call->input, size};
		execution->inputs += size;
		return true;
	}
	fail(call, RLMD_PLAN_ERROR_INPUT,
	     xasprintf("its input would have %zu bytes with all responses put in; the most is %zu",
		       size, max));
	return false;
}

static void on_time_out(void *owner)
{
	struct rlmd_call *call = owner;

	withdraw(call);
	fail(call, RLMD_PLAN_ERROR_TIMEOUT,
	     xasprintf("timed out after %" PRId64 " ms", call->timeout));
}

static void ask(struct rlmd_call *call)
{
	struct rlmd_execution *execution = call->execution;

	call->state = DISPATCH_ASKED;
	execution->waiting++;
	TAILQ_INSERT_TAIL(&execution->asked, call, entry);
	execution_open_slots(execution);
}

void rlmd_call_started(struct rlmd_call *call)
{
	struct rlmd_execution *execution = call ? call->execution : NULL;
	struct rlmd_plan_metrics *metrics;
	int64_t own;

	if (!call || call->state != DISPATCH_ASKED || execution->deaf)
		return;
	metrics = &execution->metrics;
	own = dispatch_operation(call)->timeout_ms;
	execution_pass_time(execution);
	wait_no_more(call);
	call->state = DISPATCH_RUNNING;
	call->started = clock_ms();
	call->timeout = own ? own : execution->config.timeout_ms;
	if (call->timeout > 0)
		call->timer = timer_after(execution->base, call->timeout, on_time_out, call);
	execution->running++;
	if (metrics->parallel_highest < (int64_t)execution->running)
		metrics->parallel_highest = (int64_t)execution->running;
	execution_say(execution, (struct rlmd_plan_event){.kind = RLMD_PLAN_EVENT_OPERATION_START,
							  .index = dispatch_index(call),
							  .id = dispatch_operation(call)->id});
}

static void on_turn(void *owner)
{
	struct rlmd_call *call = owner;
	const struct rlmd_orchestrator *orchestrator = &call->execution->orchestrator;

	if (!admit(call) || !fill_in(call))
		return;
	ask(call);
	if (!orchestrator->queues)
		rlmd_call_started(call);
	orchestrator->start(orchestrator->owner, dispatch_operation(call), call->input_text, call);
}

void dispatch_line_up(struct rlmd_call *call)
{
	struct rlmd_execution *execution = call->execution;
	int priority = dispatch_operation(call)->priority;

	if (execution->plan->strategy == RLMD_PLAN_SEQUENTIAL)
		priority = -(int)dispatch_index(call);
	call->state = DISPATCH_LINED;
	if (!call->lined)
		call->lined = clock_ms();
	call->permit = permit_ask(scheduler_flow(execution->scheduler), priority, on_turn, call);
}

void dispatch_release(struct rlmd_call *call)
{
	if (!--call->missing && call->state == DISPATCH_WAITING)
		dispatch_line_up(call);
}

static char *message_of(const struct rlmd_plan_answer *answer)
{
	struct rlmd_text text = text_of(answer->message);

	if (!text.size)
		text = text_of("failed without a word");
	return text_copy(text_clip(text, MESSAGE_MAX));
}

static void keep_response(struct rlmd_call *call, struct rlmd_text response)
{
	const struct rlmd_execution *execution = call->execution;

	if (!execution->options.keep &&
	    !(call->holders && execution->plan->quoted[dispatch_index(call)]))
		return;
	call->response = xstrndup(response.bytes, response.size);
	call->response_size = response.size;
}

void rlmd_call_done(struct rlmd_call *call, const struct rlmd_plan_answer *given)
{
	struct rlmd_execution *execution = call ? call->execution : NULL;
	struct rlmd_plan_answer answer;
	struct rlmd_plan_result result;

	if (!given ||
	    !abi_copy_in(&answer, sizeof answer, given, sizeof answer, "rlmd_plan_answer", NULL) ||
	    (!answer.response.bytes && answer.response.size))
		answer = (struct rlmd_plan_answer){.error = RLMD_PLAN_ERROR_OPERATION};
	if (!call || (call->state != DISPATCH_RUNNING && call->state != DISPATCH_ASKED) ||
	    execution->deaf)
		return;
	take_usage(call, answer.tokens, answer.estimated);
	if (answer.error) {
		call->error_name = answer.error_name;
		dispatch_end(call, RLMD_PLAN_FAILED, answer.error, message_of(&answer));
	} else {
		keep_response(call, answer.response);
		dispatch_end(call, RLMD_PLAN_SUCCEEDED, RLMD_PLAN_OK, NULL);
	}
	execution_on_end(call);
	TAILQ_REMOVE(&execution->untold, call, entry);
	result = dispatch_result(call);
	if (!answer.error)
		result.response = answer.response;
	execution_tell(execution, &result);
}
