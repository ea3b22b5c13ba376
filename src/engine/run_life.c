/*
 * How a run begins, ends, and hears from outside: its worker, its model call,
 * its clock. Each callback notes the fact and drives; run.c decides.
 */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/stop.h"
#include "engine/function_set.h"
#include "engine/inputs.h"
#include "engine/run_private.h"
#include "engine/wanted.h"
#include "prompt/brief.h"
#include "trace/record.h"

enum { LISTING_SHARE = 8 }; /* of the time that is left, to list the variables */

void run_warn(struct run *run, const char *text)
{
	caller_warn(&run->caller, text);
}

static void on_budget_warning(void *owner, const char *text)
{
	struct run *run = owner;

	run_warn(run, text);
	job_tell_budget_warning(run->job, text);
}

void run_on_ask(void *owner, const struct llm_response *reply, const struct rlmd_error *err)
{
	struct run *run = owner;

	run->ask = NULL;
	run->reply = reply;
	run->reply_error = err;
	run_drive(run, WAKE_MODEL);
}

static void worker_lost(struct run *run, const struct rlmd_error *err, enum worker_exit exit)
{
	worker_free(take_pointer(&run->worker));
	run->worker_idle = false;
	run->gone = *err;
	run->exit = exit;
	subcalls_free(&run->subcalls);
	if (run_waits_for(run, WAKE_WORKER))
		run_drive(run, WAKE_WORKER);
}

static void count_call(struct run *run, const struct worker_call *call)
{
	if (call->kind == WORKER_LLM_QUERY && call->count == 1)
		run->lone_calls++;
	if (call->kind != WORKER_BUDGET && !TAILQ_EMPTY(&run->subcalls))
		run->overlapped = true;
}

void run_on_worker(void *owner, const struct worker_event *event)
{
	struct run *run = owner;

	switch (event->kind) {
	case WORKER_CALL: /* the block waits for it; we do not */
		if (run_is_forcing(run)) {
			worker_lost(run,
				    &(struct rlmd_error){RLMD_ERROR_WORKER, 0, "it called too late",
							 RLMD_STOP_NONE},
				    WORKER_EXIT_DIED);
			return;
		}
		count_call(run, event->call);
		subcall_start(&run->subcalls, &run->caller, run->worker, event->call);
		if (run->open_calls && run_waits_for(run, WAKE_PERMIT))
			run_drive(run, WAKE_PERMIT); /* it needs none any more */
		return;
	case WORKER_GONE:
		worker_lost(run, event->error, event->exit);
		return;
	case WORKER_READY:
		run->starting = false;
		run->worker_idle = true;
		break;
	case WORKER_DONE:
	case WORKER_VALUE:
		break;
	}
	run->event = event;
	run_drive(run, WAKE_WORKER);
}

static void on_permit(void *owner)
{
	struct run *run = owner;

	subcalls_reply(&run->subcalls);
	if (run_waits_for(run, WAKE_PERMIT))
		run_drive(run, WAKE_PERMIT);
}

static void ask_permit(struct run *run)
{
	bool goes_on = run->turn > 0;

	run->permit = permits_ask_worker(&run->job->permits, run->depth, goes_on, on_permit, run);
}

void run_warn_wanted(struct run *run, struct rlmd_text traceback)
{
	char name[WANTED_MAX + 1], text[4 * WANTED_MAX];

	if (!wanted_module(traceback, name))
		return;
	snprintf(text, sizeof text,
		 "The model's code wanted the module %s: --preload %s gives it to it, "
		 "if --python has it",
		 name, name);
	caller_warn_once(&run->caller, text);
}

bool run_may_compute(struct run *run)
{
	if (run->open_calls || permit_held(run->permit))
		return true;
	if (!run->permit)
		ask_permit(run);
	return false;
}

/* Answers that waited for it are given without. */
void run_yield(struct run *run)
{
	permit_free(take_pointer(&run->permit));
	subcalls_reply(&run->subcalls);
}

void run_wait(struct run *run)
{
	if (!run->open_calls++)
		run_yield(run);
}

bool run_wait_over(struct run *run)
{
	bool in_block = run->worker && !run->worker_idle;

	run->open_calls--;
	return !in_block || run_may_compute(run);
}

bool run_needs_worker(const struct run *run)
{
	return run->next_block < run->response.block_count ||
	       run->response.answer == RLMD_ANSWER_VARIABLE;
}

void run_start_worker(struct run *run)
{
	struct worker_input inputs[WORKER_INPUTS_MAX];
	struct worker_options options = {
		.inputs = inputs,
		.input_count = inputs_of(&run->context, inputs),
		.task = text_from(run->task, run->task_size),
		.max_output = run->job->config.max_output,
		.log = &run->caller.log,
		.functions = function_set_told(run->job->functions),
		.function_names = function_set_names(run->job->functions),
	};

	run->starting = true;
	run->worker_idle = false;
	run->worker = worker_start(run->job->base, run->job->sandbox, &options, run_on_worker, run);
}

void run_execute(struct run *run, struct rlmd_text block)
{
	run->worker_idle = false;
	job_tell_code(run->job, run->id, run->depth, run->turn, block);
	worker_exec(run->worker, ++run->block_number, block, run->job->config.block_timeout_ms);
}

/* At `deadline` the forced answer is there, or there is none. */
static void set_last_alarm(struct run *run, int64_t deadline)
{
	struct timeval until = clock_timeval(deadline - clock_ms());

	evtimer_add(run->alarm, &until);
}

static void give_up(struct run *run, enum rlmd_stop stop, int64_t deadline)
{
	set_last_alarm(run, deadline);
	if (run_is_forcing(run)) {
		run->stop = stop;
		run->deadline = deadline;
		return;
	}
	/* A block that still runs, or waits, has nobody left to answer its calls. */
	if (!run->worker_idle || !TAILQ_EMPTY(&run->subcalls))
		worker_free(take_pointer(&run->worker));
	run_give_up(run, stop, deadline);
	run_drive(run, WAKE_NOTHING);
}

static void on_alarm(evutil_socket_t fd, short what, void *owner)
{
	struct run *run = owner;

	(void)fd;
	(void)what;
	if (run_is_forcing(run) && clock_ms() < run->deadline) {
		set_last_alarm(run, run->deadline);
	} else if (run_is_forcing(run)) {
		run_force_failed(run);
		run_drive(run, WAKE_NOTHING);
	} else {
		give_up(run, RLMD_STOP_MAX_TIME, budget_deadline(run->budget));
	}
}

void run_interrupt(struct run *run, int64_t deadline)
{
	give_up(run, RLMD_STOP_INTERRUPTED, deadline);
}

/* The time is over for turns before it is over for the run. */
static void set_alarm(struct run *run)
{
	int64_t left = budget_remaining_ms(run->budget);
	struct timeval until = clock_timeval(left - pace_closing(&run->pace));

	evtimer_add(run->alarm, &until);
}

void run_measure(struct run *run, const struct llm_response *reply)
{
	if (!reply->cached)
		pace_learn(&run->pace, reply->attempt_ms, reply->usage.output);
	set_alarm(run);
}

int64_t run_listing_ms(const struct run *run)
{
	int64_t share = (run->deadline - clock_ms()) / LISTING_SHARE;

	return share < RUN_LISTING_MS ? share : RUN_LISTING_MS;
}

enum rlmd_stop run_blocked(struct run *run, struct rlmd_error *err)
{
	enum rlmd_stop late = RLMD_STOP_MAX_TIME;

	if (!pace_too_late(&run->pace, budget_remaining_ms(run->budget)))
		return budget_iteration_block(run->budget, err);
	error_limit(err, late, "%s", stop_words(late));
	return late;
}

static struct caller caller_of(struct run *run, struct caller *parent)
{
	return (struct caller){
		.job = run->job,
		.parent = parent,
		.run = run,
		.id = run->id,
		.log = log_child(&run->job->log),
		.budget = run->budget,
		.reserve = &run->reserve,
		.context = &run->context,
		.model = run->job->subcall_model,
		.depth = run->depth,
		.answers_max = CALLER_ANSWERS_MAX,
		.warnings = json_array(),
	};
}

struct run *run_start(struct rlmd_job *job, const struct run_options *options, run_done_fn *done,
		      void *owner)
{
	struct run *run = xcalloc(1, sizeof *run);

	*run = (struct run){
		.job = job,
		.depth = options->depth,
		.task = text_copy(options->task),
		.task_size = options->task.size,
		.model = xstrdup(options->model),
		.form = options->form,
		.observations = evbuffer_new(),
		.last_observations = evbuffer_new(),
		.done = done,
		.owner = owner,
	};
	TAILQ_INIT(&run->subcalls);
	caller_name(options->parent, job, options->place ? options->place : "", run->id);
	context_share(&run->context, options->context);
	run->budget = options->pool ? budget_new_child(options->pool, run->depth, options->among,
						       on_budget_warning, run)
				    : budget_new(&job->config.limits, on_budget_warning, run);
	run->caller = caller_of(run, options->parent);
	caller_set_path(&run->caller, options->place);
	log_add_text(&run->caller.log, "run", run->id);
	job->runs_alive[run->depth]++;
	record_run(job->trace, run->id, options->parent ? options->parent->id : NULL, run->depth,
		   options->task, run_model(run), run_prompts(run)->name, &run->context,
		   run->depth ? NULL : job_sandbox(job));
	run->deadline = budget_deadline(run->budget);
	run_say_system(run);
	reserve_set(&run->reserve, job, run->budget, run_model(run), run_forced_size(run));
	run->pace.all = budget_remaining_ms(run->budget);
	run->alarm = evtimer_new(job->base, on_alarm, run);
	loop_make_urgent(run->alarm);
	set_alarm(run);
	run->alive = options->alive;
	run->permit = options->permit;
	run_drive(run, WAKE_PERMIT);
	return run;
}

void run_close_iteration(struct run *run)
{
	if (!run->iteration_open)
		return;
	run->iteration_open = false;
	record_iteration(run->job->trace, run->id, run->turn - 1);
}

/* Ends what the run started and tells the end; the run is gone after this. */
void run_deliver(struct run *run)
{
	struct run_result result = {
		.stop = run->stop,
		.error = run->error,
		.answer = text_from(run->answer, run->answer_size),
		.forced = run->source == ANSWER_FORCED,
		.cut = run->source == ANSWER_FORCED && run->cut,
	};
	struct record_ending ending = {result.answer, run->source, run->stop, &run->error};

	/* Whoever tries again wants another try, and not the same words once more. */
	if (run->error.kind == RLMD_ERROR_SCHEMA || run->error.kind == RLMD_ERROR_NO_ANSWER)
		llm_forget(run->job->llm, run->id);
	event_del(run->alarm);
	subcalls_free(&run->subcalls);
	worker_free(take_pointer(&run->worker));
	record_end(run->job->trace, run->id, !run->caller.parent, &ending, run->budget);
	run->done(run->owner, &result);
}

void run_halt(struct run *run)
{
	ask_cancel(take_pointer(&run->ask));
	answer_check_cancel(take_pointer(&run->check));
	subcalls_free(&run->subcalls);
	worker_free(take_pointer(&run->worker));
}

void run_stop(struct run *run, const struct rlmd_error *err)
{
	run->stop = RLMD_STOP_INTERRUPTED;
	run->error = *err;
	run_halt(run);
	run_deliver(run);
}

void run_free(struct run *run)
{
	if (!run)
		return;
	run_halt(run);
	permit_free(run->permit);
	permit_free(run->alive);
	event_free(run->alarm);
	reserve_drop(&run->reserve);
	budget_free(run->budget);
	response_done(&run->response);
	history_done(&run->history);
	conversation_done(&run->conversation);
	context_done(&run->context);
	evbuffer_free(run->observations);
	evbuffer_free(run->last_observations);
	caller_done(&run->caller);
	run->job->runs_alive[run->depth]--;
	free(run->look);
	free(run->task);
	free(run->model);
	free(run->guess);
	free(run->answer);
	free(run->wrong);
	free(run->reason);
	free(run);
}

struct budget *run_budget(const struct run *run)
{
	return run->budget;
}

const json_t *run_warnings(const struct run *run)
{
	return run->caller.warnings;
}

const char *run_asked(const struct run *run)
{
	return run->asked;
}

int run_turn(const struct run *run)
{
	return run->turn;
}
