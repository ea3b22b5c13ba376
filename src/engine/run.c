/*
 * One run, told in the order in which it happens.
 *
 *   ADMIT -> ADMIT      it is not its turn to have a worker
 *   ADMIT -> SHOW       a worker stands, or the run fails
 *   SHOW -> SHOWN       a block of ours looks at the inputs, as the model's would
 *   SHOW -> ASK         there are none
 *   SHOWN -> ASK        what it printed is noted
 *   ASK -> READ         the model is asked for its next step
 *   ASK -> LIST         the budget is spent, or the time for turns
 *   READ -> EXEC        it answered
 *   READ -> LIST        the budget did not afford the question
 *   READ -> READ        it was too long for the model, and is asked in fewer words
 *   EXEC -> FEED        the next block runs, and its calls are served
 *   EXEC -> QUEUE       it is not its turn to compute
 *   EXEC -> RESTART     there is no worker any more: another one
 *   EXEC -> JUDGE       no block is left
 *   QUEUE -> EXEC       it is
 *   RESTART -> RESTART  it is not its turn to have one
 *   RESTART -> EXEC
 *   FEED -> EXEC        what it printed is noted
 *   JUDGE -> ASK        no answer yet, or one that its own code has to confirm
 *   JUDGE -> LOOKUP     FINAL_VAR, or FINAL of what may be a name: the worker renders the variable
 *   JUDGE -> LIST       three turns in a row without code or answer
 *   LOOKUP -> ASK       there is no such variable, or an expression, and the model is told
 *   LIST -> FORCE       which variables there are
 *   FORCE -> CLOSE      the model is asked for its answer, now
 *   CLOSE -> LOOKUP     it named a variable
 *   CLOSE -> CLOSE      as with READ; or it had no words in it, and they are asked for
 *   CHECK -> ASK        it will not do, and the model is told why
 *   CHECK -> CLOSE      likewise of a forced one, once
 *   any -> LIST         the time is over, or somebody wants the answer now
 *   any -> CHECK        an answer, which somebody wants to see before it is taken
 *
 * Every state may go to FINISH: an error, an answer, or one that nothing can confirm any more.
 * Nothing here blocks; only drive() calls a state's function. One that was awaited is entered
 * by what RUN_STATES says wakes it: run->event and run->reply are lent for that one drive.
 */
#include "engine/run.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "base/timer.h"
#include "engine/function_set.h"
#include "engine/inputs.h"
#include "engine/run_private.h"
#include "trace/record.h"

enum {
	IDLE_TURNS_MAX = 3,   /* without code and answer, before one is asked for */
	LISTING_MS_MAX = 500, /* to list the variables, at most; */
	LISTING_SHARE = 8,    /* and no more than this part of the time that is left; */
	LISTING_MS_MIN = 5,   /* with less the variables are not listed */
	LATE_SHARE = 4,       /* of the time that is left, for blocks of a reply that came late */
};

enum step { MORE, WAIT, DONE };

static enum step then(struct run *run, enum run_state next)
{
	run->state = next;
	return MORE;
}

static const enum run_wake wakes[] = {
#define X(name, fn, wake) [RUN_##name] = WAKE_##wake,
	RUN_STATES(X)
#undef X
};

static bool waits_for(const struct run *run, enum run_wake wake)
{
	return wakes[run->state] == wake;
}

static enum step await(struct run *run, enum run_state next)
{
	assert(wakes[next] != WAKE_NOTHING);
	run->state = next;
	return WAIT;
}

static void drive(struct run *, enum run_wake); /* asserts it; the run may be gone after it */
static void deliver(struct run *); /* tells how it ended; the run may be gone after it */
static void on_worker(void *run, const struct worker_event *);

/* --- its worker, permits and time ------------------------------------------------------ */

static void on_permit(void *owner)
{
	struct run *run = owner;

	subcall_reply_all(&run->subcalls);
	if (waits_for(run, WAKE_PERMIT))
		drive(run, WAKE_PERMIT);
}

/* False: it is in line for a permit, and is driven when it has one. */
static bool may_compute(struct run *run)
{
	bool goes_on = run->turn > 0 || run->worker;

	if (run->open_calls || permit_held(run->permit))
		return true;
	if (!run->permit)
		run->permit = scope_ask_worker(run->scope, run->depth, goes_on, on_permit, run);
	return false;
}

/* Answers that waited for it are given without. */
static void yield(struct run *run)
{
	permit_free(take_pointer(&run->permit));
	subcall_reply_all(&run->subcalls);
}

void run_wait(struct run *run)
{
	if (!run->open_calls++)
		yield(run);
}

bool run_wait_over(struct run *run)
{
	bool in_block = run->worker && !run->worker_idle;

	run->open_calls--;
	return !in_block || may_compute(run);
}

static void start_worker(struct run *run)
{
	struct worker_input inputs[WORKER_INPUTS_MAX];
	struct worker_options options = {
		.inputs = inputs,
		.input_count = inputs_of(&run->context, inputs),
		.task = text_from(run->task, run->task_size),
		.max_output = run->scope->config.max_output,
		.log = &run->caller.log,
		.functions = function_set_json(run->scope->functions),
		.function_names = function_set_names(run->scope->functions),
	};

	run->starting = true;
	run->worker_idle = false;
	run->worker = worker_start(run->scope->base, run->scope->sandbox, &options, on_worker, run);
}

static void execute(struct run *run, struct rlmd_text block)
{
	run->worker_idle = false;
	hooks_tell_code(&run->scope->hooks, run->id, run->depth, run->turn, block);
	worker_exec(run->worker, ++run->block_number, block, run->scope->config.block_timeout_ms);
}

/* The time is over for turns before it is over for the run. Where a reply comes later than that,
 * its blocks run, in a part of the time that is left, and their calls are refused. */
static void set_alarm(struct run *run)
{
	int64_t left = budget_remaining_ms(run->budget), late = left / LATE_SHARE;
	int64_t for_turns = left - latency_closing(&run->latency);

	run->caller.late = for_turns < late;
	timer_start(run->alarm, int64_max(for_turns, late));
}

static int64_t listing_ms(const struct run *run)
{
	return int64_min((run->deadline - clock_ms()) / LISTING_SHARE, LISTING_MS_MAX);
}

static void close_iteration(struct run *run)
{
	if (!run->iteration_open)
		return;
	run->iteration_open = false;
	record_iteration(run->scope->trace, run->id, run->turn - 1);
}

/* --- its model, and the check of its answer ----------------------------------------------- */

static void on_ask(void *owner, const struct llm_response *reply, const struct rlmd_error *err)
{
	struct run *run = owner;

	run->ask = NULL;
	run->reply = reply;
	run->reply_error = err;
	drive(run, WAKE_MODEL);
}

static void ask_model(struct run *run, enum llm_kind kind, int64_t max_tokens)
{
	yield(run);
	run->ask = run_words_ask(run, kind, max_tokens, on_ask);
}

static void on_verdict(void *owner, const struct answer_verdict *verdict)
{
	struct run *run = owner;

	run->check = NULL;
	run->verdict = verdict;
	drive(run, WAKE_CHECK);
}

static bool ask_check(struct run *run)
{
	struct rlmd_text answer = text_from(run->answer, run->answer_size);

	if (!answer_check_wanted(&run->form))
		return false;
	yield(run);
	run->check = answer_check_start(run->scope, &run->form, answer, on_verdict, run);
	return true;
}

/* --- its states ------------------------------------------------------------------------ */

static enum step take(struct run *run)
{
	run_words_accept(run);
	return then(run, RUN_FINISH);
}

static enum step final(struct run *run, struct rlmd_text text, enum answer_source source)
{
	run_words_give_answer(run, text, source);
	return ask_check(run) ? await(run, RUN_CHECK) : take(run);
}

/* No further turn can confirm the answer. */
static enum step stand(struct run *run)
{
	run_words_warn_unconfirmed(run);
	return final(run, text_from(run->guess, run->guess_size), ANSWER_FINAL_DIRECT);
}

static enum step fail(struct run *run, const struct rlmd_error *err)
{
	run->error = *err;
	run->source = ANSWER_MISSING;
	run->stop = error_stop(err);
	return run->guess && !scope_ends_with_account(run->scope, run->budget, run->stop)
		       ? stand(run)
		       : then(run, RUN_FINISH);
}

static void force(struct run *run, enum rlmd_stop reason, const char *words)
{
	run->stop = reason;
	free(run->reason);
	run->reason = xstrdup(words);
}

/* An answer is asked for, and the run ends whatever comes. */
static enum step stop(struct run *run, enum rlmd_stop reason, const char *words)
{
	struct rlmd_error err;

	if (scope_ends_with_account(run->scope, run->budget, reason)) {
		error_limit(&err, reason, "%s", words);
		return fail(run, &err);
	}
	force(run, reason, words);
	return then(run, RUN_LIST);
}

static enum step run_admit(struct run *run)
{
	if (!may_compute(run))
		return await(run, RUN_ADMIT);
	start_worker(run);
	return await(run, RUN_SHOW);
}

static enum step fail_to_start(struct run *run)
{
	if (run->exit == WORKER_EXIT_NO_MEMORY)
		error_context(&run->gone,
			      "no room for the input (a higher worker-memory gives more)");
	return fail(run, &run->gone);
}

static enum step run_show(struct run *run)
{
	auto_evbuffer struct evbuffer *code = buffer_new();

	if (!run->worker)
		return fail_to_start(run);
	if (!run_words_say_look(run, code))
		return then(run, RUN_ASK);
	run->look = text_drain(code, NULL);
	execute(run, text_of(run->look));
	return await(run, RUN_SHOWN);
}

/* It is a block like any other, but that it is nobody's answer. */
static enum step run_shown(struct run *run)
{
	struct worker_block lost = {.failed = true, .error = text_of(run->gone.text)};
	const struct worker_block *block = run->event ? run->event->block : NULL;
	auto_free char *code = take_pointer(&run->look);

	run->worker_idle = block;
	run_words_note_look(run, text_of(code), block ? block : &lost);
	if (!block)
		run_words_note_loss(run);
	return then(run, RUN_ASK);
}

static enum step run_ask(struct run *run)
{
	struct rlmd_error blocked;

	close_iteration(run);
	if (latency_too_late(&run->latency, budget_remaining_ms(run->budget)))
		return stop(run, RLMD_STOP_MAX_TIME, error_stop_words(RLMD_STOP_MAX_TIME));
	if (budget_iteration_block(run->budget, &blocked))
		return stop(run, blocked.stop, blocked.text);
	budget_count_iteration(run->budget);
	run->caller.activity.turn = ++run->turn;
	run_words_say_turn(run);
	ask_model(run, LLM_TURN, SCOPE_OUTPUT_TURN);
	return await(run, RUN_READ);
}

static enum step read_error(struct run *run, const struct rlmd_error *err)
{
	if (err->stop) /* a limit was reached */
		return stop(run, err->stop, err->text);
	if (err->kind != RLMD_ERROR_CONTEXT_OVERFLOW || !run_words_say_less(run))
		return fail(run, err);
	ask_model(run, LLM_TURN, SCOPE_OUTPUT_TURN);
	return await(run, RUN_READ);
}

static enum step run_read(struct run *run)
{
	if (run->reply_error)
		return read_error(run, run->reply_error);
	if (!run->reply->cached)
		latency_learn(&run->latency, run->reply->attempt_ms, run->reply->usage.output);
	set_alarm(run);
	run_words_read_turn(run);
	run->iteration_open = true;
	run->next_block = 0;
	run->block_failed = false;
	return then(run, RUN_EXEC);
}

static enum step run_exec(struct run *run)
{
	bool needs_worker = run->next_block < run->response.block_count ||
			    run->response.answer == RLMD_ANSWER_VARIABLE ||
			    run_words_may_mean_value(run);

	if (run->worker && needs_worker && !may_compute(run))
		return await(run, RUN_QUEUE);
	if (run->next_block == run->response.block_count)
		return then(run, RUN_JUDGE);
	if (!run->worker)
		return run->starting ? fail_to_start(run) : then(run, RUN_RESTART);
	run->lone_calls = 0;
	run->overlapped = false;
	execute(run, run->response.blocks[run->next_block]);
	return await(run, RUN_FEED);
}

static enum step run_queue(struct run *run)
{
	return then(run, RUN_EXEC);
}

static enum step run_restart(struct run *run)
{
	if (!may_compute(run))
		return await(run, RUN_RESTART);
	run_words_note_loss(run);
	start_worker(run);
	return await(run, RUN_EXEC);
}

/* A block that took its worker with it: the later ones of the response do not run. */
static enum step feed_loss(struct run *run)
{
	struct worker_block block = {.failed = true, .error = text_of(run->gone.text)};

	run_words_note_block(run, &block);
	run_words_note_loss(run);
	run->next_block = run->response.block_count;
	return then(run, RUN_EXEC);
}

static enum step run_feed(struct run *run)
{
	const struct worker_block *block = run->event ? run->event->block : NULL;

	if (!block)
		return feed_loss(run);
	run->worker_idle = true;
	run_words_note_block(run, block);
	run_words_note_hint(run);
	run->next_block++;
	if (!block->final)
		return then(run, RUN_EXEC);
	return final(run, block->answer, block->final);
}

/* Neither an answer nor, perhaps, code: says what to do, and gives up on repetition. */
static enum step judge_further(struct run *run)
{
	run_words_note_reply(run);
	if (run->response.block_count)
		free(take_pointer(&run->guess));
	if (run->response.block_count || run->response.cut_fence) {
		run->idle_turns = 0;
		return then(run, RUN_ASK);
	}
	if (++run->idle_turns < IDLE_TURNS_MAX)
		return then(run, RUN_ASK);
	return stop(run, RLMD_STOP_NO_CODE, error_stop_words(RLMD_STOP_NO_CODE));
}

static enum step look_up(struct run *run, int64_t timeout_ms)
{
	auto_free char *name = text_copy(run->response.value);

	run->worker_idle = false;
	worker_get(run->worker, name, timeout_ms);
	return await(run, RUN_LOOKUP);
}

static enum step ask_variable(struct run *run)
{
	if (run->worker)
		return look_up(run, run->scope->config.block_timeout_ms);
	run_words_note_loss(run);
	run_words_note_unknown(run, text_of(""));
	return then(run, RUN_ASK);
}

/* Has the model confirm its answer, if there is a turn left. */
static enum step confirm(struct run *run, bool computes)
{
	struct rlmd_text value = run->response.value;

	run->guess = text_copy(value);
	run->guess_size = value.size;
	run->guess_computes = computes;
	run_words_note(run, computes ? "reading" : "confirm", value);
	return then(run, RUN_ASK);
}

/* ENG-6: beside code it knew nothing of its outputs: they are shown. */
static enum step take_direct(struct run *run)
{
	if (!run->response.block_count || run->guess)
		return final(run, run->response.value, ANSWER_FINAL_DIRECT);
	return confirm(run, false);
}

static enum step run_judge(struct run *run)
{
	struct rlmd_text json;

	if (run->response.invented)
		run_words_note(run, "invented", text_of(""));
	switch (run->response.answer) {
	case RLMD_ANSWER_NONE:
		if (run_words_json(run, &json))
			return final(run, json, ANSWER_FINAL_DIRECT);
		break;
	case RLMD_ANSWER_DIRECT:
		if (run->worker && run_words_may_mean_value(run))
			return look_up(run, run->scope->config.block_timeout_ms);
		return take_direct(run);
	case RLMD_ANSWER_VARIABLE:
		return ask_variable(run);
	}
	return judge_further(run);
}

static enum step fail_forced(struct run *run, const struct rlmd_error *cause)
{
	struct rlmd_error err = run_words_explain_forced(run, cause);

	return fail(run, &err);
}

/* An empty answer is none. */
static enum step settle(struct run *run, struct rlmd_text text)
{
	if (!text.size)
		return fail_forced(run, &(struct rlmd_error){.text = "it was empty"});
	return final(run, text, ANSWER_FORCED);
}

static enum step run_lookup(struct run *run)
{
	const struct worker_event *event = run->event;
	bool direct = run->response.answer == RLMD_ANSWER_DIRECT;
	struct rlmd_text else_text = direct ? run->response.value : text_of("");

	if (run->reason)
		return settle(run, event && event->found ? event->value : else_text);
	if (!event) {
		run_words_note_loss(run);
		return direct ? take_direct(run) : then(run, RUN_ASK);
	}
	run->worker_idle = true;
	if (event->found)
		return final(run, event->value, ANSWER_FINAL_VAR);
	if (direct && (run->guess || !run->response.stands_in))
		return event->expression && !run->guess ? confirm(run, true) : take_direct(run);
	run_words_note_unknown(run, event->variables);
	return then(run, RUN_ASK);
}

static enum step run_list(struct run *run)
{
	close_iteration(run);
	if (run->guess)
		return stand(run);
	/* No call of the block can be answered any more; and the listing may cost no time. */
	if (!TAILQ_EMPTY(&run->subcalls)) {
		subcall_free_all(&run->subcalls);
		worker_free(take_pointer(&run->worker));
	}
	if (!run->worker || !run->worker_idle || listing_ms(run) < LISTING_MS_MIN)
		return then(run, RUN_FORCE);
	run->worker_idle = false;
	worker_get(run->worker, "", listing_ms(run));
	return await(run, RUN_FORCE);
}

static enum step ask_forced(struct run *run)
{
	ask_model(run, LLM_FORCED, SCOPE_OUTPUT_FORCED);
	return await(run, RUN_CLOSE);
}

static enum step run_force(struct run *run)
{
	bool listed = run->event && run->event->kind == WORKER_VALUE;

	run->worker_idle |= listed;
	if (listed)
		run_words_note_variables(run, run->event->variables);
	run_words_say_forced(run);
	return ask_forced(run);
}

static enum step close_error(struct run *run, const struct rlmd_error *err)
{
	if (err->kind != RLMD_ERROR_CONTEXT_OVERFLOW || !run_words_say_forced_short(run))
		return fail_forced(run, err);
	return ask_forced(run);
}

/* No code runs any more, so code is no answer: words are asked for, once. */
static enum step close_wordless(struct run *run)
{
	if (run_words_ask_words(run, run->reply->text))
		return ask_forced(run);
	return fail_forced(run, run_words_wordless(run));
}

static enum step run_close(struct run *run)
{
	if (run->reply_error)
		return close_error(run, run->reply_error);
	run_words_read(run);
	if (text_trim(run->reply->text).size && !response_has_words(&run->response))
		return close_wordless(run);
	if (run->cut)
		caller_warn(&run->caller, "The forced answer was cut at its length limit");
	if (run->response.answer == RLMD_ANSWER_DIRECT &&
	    !(run->worker_idle && run_words_may_mean_value(run)))
		return settle(run, run->response.value);
	if (run->response.answer == RLMD_ANSWER_NONE)
		return settle(run, run->response.said);
	return run->worker_idle ? look_up(run, LISTING_MS_MAX) : settle(run, text_of(""));
}

/* Where it will not do there is another turn, a forced answer, that once more, or an error. */
static enum step run_check(struct run *run)
{
	const struct answer_verdict *verdict = run->verdict;
	bool forced = run->source == ANSWER_FORCED;

	if (!verdict->error && !verdict->wrong.size) {
		run_words_give_answer(run, verdict->answer, run->source);
		return take(run);
	}
	run_words_reject(run);
	if (verdict->error)
		return fail(run, verdict->error);
	if (run->error.kind)
		return then(run, RUN_FINISH);
	if (!forced)
		return then(run, run->reason ? RUN_LIST : RUN_ASK);
	return run_words_ask_form(run) ? ask_forced(run) : fail_forced(run, &run->error);
}

static enum step run_finish(struct run *run)
{
	close_iteration(run);
	budget_iteration_block(run->budget, NULL); /* warns of what the last step took */
	return DONE;
}

static void drive(struct run *run, enum run_wake wake)
{
	static enum step (*const enter[])(struct run *) = {
#define X(name, fn, wake) [RUN_##name] = run_##fn,
		RUN_STATES(X)
#undef X
	};
	enum step step;

	assert(!run->driving && waits_for(run, wake));
	run->driving = true;
	do
		step = enter[run->state](run);
	while (step == MORE);
	run->driving = false;
	run->event = NULL;
	run->reply = NULL;
	run->reply_error = NULL;
	run->verdict = NULL;
	if (step == DONE)
		deliver(run);
}

/* --- from outside ---------------------------------------------------------------------- */

static bool is_forcing(const struct run *run)
{
	return run->reason || run->state == RUN_FINISH;
}

static void on_budget_warning(void *owner, const char *text)
{
	struct run *run = owner;

	caller_warn(&run->caller, text);
	hooks_tell_budget_warning(&run->scope->hooks, text);
}

static void worker_lost(struct run *run, const struct rlmd_error *err, enum worker_exit exit)
{
	worker_free(take_pointer(&run->worker));
	run->worker_idle = false;
	run->gone = *err;
	run->exit = exit;
	subcall_free_all(&run->subcalls);
	if (waits_for(run, WAKE_WORKER))
		drive(run, WAKE_WORKER);
}

static void on_worker(void *owner, const struct worker_event *event)
{
	struct run *run = owner;

	switch (event->kind) {
	case WORKER_CALL: /* the block waits for it; we do not */
		if (is_forcing(run)) {
			worker_lost(run,
				    &(struct rlmd_error){RLMD_ERROR_WORKER, 0, "it called too late",
							 RLMD_STOP_NONE},
				    WORKER_EXIT_DIED);
			return;
		}
		run_words_count_call(run, event->call);
		subcall_start(&run->subcalls, &run->caller, run->worker, event->call);
		if (run->open_calls && waits_for(run, WAKE_PERMIT))
			drive(run, WAKE_PERMIT); /* it needs none any more */
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
	drive(run, WAKE_WORKER);
}

static void cancel_asks(struct run *run)
{
	ask_cancel(take_pointer(&run->ask));
	answer_check_cancel(take_pointer(&run->check));
	subcall_free_all(&run->subcalls);
}

/* At `deadline` the forced answer is there, or there is none. */
static void set_last_alarm(struct run *run, int64_t deadline)
{
	timer_start(run->alarm, deadline - clock_ms());
}

static void give_up(struct run *run, enum rlmd_stop stop, int64_t deadline)
{
	set_last_alarm(run, deadline);
	if (is_forcing(run)) {
		run->stop = stop;
		run->deadline = deadline;
		return;
	}
	/* A block that still runs, or waits, has nobody left to answer its calls. */
	if (!run->worker_idle || !TAILQ_EMPTY(&run->subcalls))
		worker_free(take_pointer(&run->worker));
	force(run, stop, error_stop_words(stop));
	run->deadline = deadline;
	cancel_asks(run);
	run->state = RUN_LIST;
	drive(run, WAKE_NOTHING);
}

static void on_alarm(void *owner)
{
	struct run *run = owner;

	if (is_forcing(run) && clock_ms() < run->deadline) {
		set_last_alarm(run, run->deadline);
	} else if (is_forcing(run)) {
		cancel_asks(run);
		fail_forced(run, &(struct rlmd_error){.text = "its time was over"});
		drive(run, WAKE_NOTHING);
	} else {
		give_up(run, RLMD_STOP_MAX_TIME, budget_deadline(run->budget));
	}
}

void run_interrupt(struct run *run, int64_t deadline)
{
	give_up(run, RLMD_STOP_INTERRUPTED, deadline);
}

struct run *run_start(struct scope *scope, const struct run_options *options, run_done_fn *done,
		      void *owner)
{
	struct run *run = xcalloc(1, sizeof *run);

	*run = (struct run){
		.scope = scope,
		.depth = options->depth,
		.task = text_copy(options->task),
		.task_size = options->task.size,
		.model = xstrdup(options->model),
		.form = options->form,
		.observations = buffer_new(),
		.last_observations = buffer_new(),
		.done = done,
		.owner = owner,
	};
	TAILQ_INIT(&run->subcalls);
	caller_name(options->parent, scope, options->position ? options->position : "", run->id);
	context_share(&run->context, options->context);
	run->budget = options->pool ? budget_new_child(options->pool, run->depth, options->among,
						       on_budget_warning, run)
				    : budget_new(&scope->config.limits, on_budget_warning, run);
	run->caller = (struct caller){
		.scope = scope,
		.parent = options->parent,
		.run = run,
		.id = run->id,
		.log = log_child(&scope->log),
		.budget = run->budget,
		.reserve = &run->reserve,
		.context = &run->context,
		.model = scope->subcall_model,
		.depth = run->depth,
		.answers_max = CALLER_ANSWERS_MAX,
		.warnings = json_make_array(),
	};
	caller_set_path(&run->caller, options->position);
	log_add_text(&run->caller.log, "run", run->id);
	caller_begin(&run->caller, run_words_model(run), text_from(run->task, run->task_size));
	record_run(scope->trace, run->id, options->parent ? options->parent->id : NULL, run->depth,
		   options->task, run_words_model(run), run_words_prompts(run)->name, &run->context,
		   run->depth ? NULL : scope_sandbox(scope));
	run->deadline = budget_deadline(run->budget);
	run_words_say_system(run);
	reserve_set(&run->reserve, scope, run->budget, run_words_model(run),
		    run_words_forced_size(run));
	run->latency.all = budget_remaining_ms(run->budget);
	run->alarm = timer_new(scope->base, on_alarm, run);
	timer_make_urgent(run->alarm);
	set_alarm(run);
	run->alive = options->alive;
	run->permit = options->permit;
	drive(run, WAKE_PERMIT);
	return run;
}

/* Ends what the run started and tells the end; the run is gone after this. */
static void deliver(struct run *run)
{
	struct run_result result = {
		.stop = run->stop,
		.error = run->error,
		.answer = text_from(run->answer, run->answer_size),
		.forced = run->source == ANSWER_FORCED,
		.cut = run->source == ANSWER_FORCED && run->cut,
	};
	struct record_ending ending = {result.answer, run->source, run->stop, &run->error};

	/* Another attempt at the job has to ask anew, and not to hear the same words from the
	 * cache. */
	if (run->error.kind == RLMD_ERROR_SCHEMA || run->error.kind == RLMD_ERROR_NO_ANSWER)
		llm_forget(run->scope->llm, run->id);
	timer_stop(run->alarm);
	subcall_free_all(&run->subcalls);
	worker_free(take_pointer(&run->worker));
	record_end(run->scope->trace, run->id, !run->caller.parent, &ending, run->budget);
	run->done(run->owner, &result);
}

void run_halt(struct run *run)
{
	cancel_asks(run);
	worker_free(take_pointer(&run->worker));
}

void run_stop(struct run *run, const struct rlmd_error *err)
{
	run->stop = RLMD_STOP_INTERRUPTED;
	run->error = *err;
	run_halt(run);
	deliver(run);
}

void run_free(struct run *run)
{
	if (!run)
		return;
	run_halt(run);
	permit_free(run->permit);
	permit_free(run->alive);
	timer_free(run->alarm);
	reserve_drop(&run->reserve);
	budget_free(run->budget);
	response_done(&run->response);
	history_done(&run->history);
	conversation_done(&run->conversation);
	context_done(&run->context);
	evbuffer_free(run->observations);
	evbuffer_free(run->last_observations);
	caller_done(&run->caller);
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
