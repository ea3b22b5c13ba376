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
 *   READ -> LIST        the purse did not afford the question
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
 *   JUDGE -> LOOKUP     FINAL_VAR: the worker renders the variable
 *   JUDGE -> LIST       three turns in a row without code or answer
 *   LOOKUP -> ASK       there is no such variable, and the model is told
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
 * Nothing here blocks; only run_drive() calls a state's function. One that was awaited is entered
 * by what RUN_STATES says wakes it: run->event and run->reply are lent for that one drive.
 */
#include "engine/run.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/stop.h"
#include "engine/run_private.h"
#include "trace/record.h"

enum {
	IDLE_TURNS_MAX = 3, /* without code and answer, before one is asked for */
	LISTING_MS_MIN = 5, /* with less the variables are not listed */
};

enum verdict { MORE, WAIT, DONE };

static enum verdict then(struct run *run, enum run_state next)
{
	run->state = next;
	return MORE;
}

static const enum run_wake wakes[] = {
#define X(name, fn, wake) [RUN_##name] = WAKE_##wake,
	RUN_STATES(X)
#undef X
};

bool run_waits_for(const struct run *run, enum run_wake wake)
{
	return wakes[run->state] == wake;
}

static enum verdict await(struct run *run, enum run_state next)
{
	assert(wakes[next] != WAKE_NOTHING);
	run->state = next;
	return WAIT;
}

static enum verdict take(struct run *run)
{
	run_take_answer(run);
	return then(run, RUN_FINISH);
}

static enum verdict final(struct run *run, struct rlmd_text text, enum answer_source source)
{
	run_give_answer(run, text, source);
	return run_ask_check(run) ? await(run, RUN_CHECK) : take(run);
}

/* What was answered before its code had run: nothing can be asked any more. */
static enum verdict stand(struct run *run)
{
	run_warn(run, "The answer stood beside code that had not run, and was not confirmed");
	return final(run, text_from(run->guess, run->guess_size), ANSWER_FINAL_DIRECT);
}

static enum verdict fail(struct run *run, const struct rlmd_error *err)
{
	run->error = *err;
	run->source = ANSWER_MISSING;
	run->stop = error_stop(err);
	return run->guess ? stand(run) : then(run, RUN_FINISH);
}

static void force(struct run *run, enum rlmd_stop reason, const char *words)
{
	run->stop = reason;
	free(run->reason);
	run->reason = xstrdup(words);
}

/* An answer is asked for, and the run ends whatever comes. */
static enum verdict stop(struct run *run, enum rlmd_stop reason, const char *words)
{
	force(run, reason, words);
	return then(run, RUN_LIST);
}

static enum verdict run_admit(struct run *run)
{
	if (!run_may_compute(run))
		return await(run, RUN_ADMIT);
	run_start_worker(run);
	return await(run, RUN_SHOW);
}

static enum verdict fail_to_start(struct run *run)
{
	if (run->exit == WORKER_EXIT_NO_MEMORY)
		error_context(&run->gone, "no room for the input (--worker-memory gives more)");
	return fail(run, &run->gone);
}

static enum verdict run_show(struct run *run)
{
	auto_evbuffer struct evbuffer *code = evbuffer_new();

	if (!run->worker)
		return fail_to_start(run);
	if (!run_say_look(run, code))
		return then(run, RUN_ASK);
	run->look = text_drain(code, NULL);
	run_execute(run, text_of(run->look));
	return await(run, RUN_SHOWN);
}

/* It is a block like any other, but that it is nobody's answer. */
static enum verdict run_shown(struct run *run)
{
	struct worker_block lost = {.failed = true, .error = text_of(run->gone.text)};
	const struct worker_block *block = run->event ? run->event->block : NULL;
	auto_free char *code = take_pointer(&run->look);

	run->worker_idle = block;
	run_tell_look(run, text_of(code), block ? block : &lost);
	if (!block)
		run_tell_loss(run);
	return then(run, RUN_ASK);
}

static enum verdict run_ask(struct run *run)
{
	struct rlmd_error blocked;

	run_close_iteration(run);
	if (run_blocked(run, &blocked))
		return stop(run, blocked.stop, blocked.text);
	budget_count_iteration(run->budget);
	run->turn++;
	run_say_turn(run);
	run_ask_model(run, LLM_TURN, ASK_TOKENS_TURN);
	return await(run, RUN_READ);
}

static enum verdict read_error(struct run *run, const struct rlmd_error *err)
{
	if (err->stop) /* a limit was reached */
		return stop(run, err->stop, err->text);
	if (err->kind != RLMD_ERROR_CONTEXT_OVERFLOW || !run_say_less(run))
		return fail(run, err);
	run_ask_model(run, LLM_TURN, ASK_TOKENS_TURN);
	return await(run, RUN_READ);
}

static enum verdict run_read(struct run *run)
{
	if (run->reply_error)
		return read_error(run, run->reply_error);
	run_measure(run, run->reply);
	run_take_turn(run);
	run->iteration_open = true;
	run->next_block = 0;
	run->block_failed = false;
	return then(run, RUN_EXEC);
}

static enum verdict run_exec(struct run *run)
{
	if (run->worker && run_needs_worker(run) && !run_may_compute(run))
		return await(run, RUN_QUEUE);
	if (run->next_block == run->response.block_count)
		return then(run, RUN_JUDGE);
	if (!run->worker)
		return run->starting ? fail_to_start(run) : then(run, RUN_RESTART);
	run->lone_calls = 0;
	run->overlapped = false;
	run_execute(run, run->response.blocks[run->next_block]);
	return await(run, RUN_FEED);
}

static enum verdict run_queue(struct run *run)
{
	return then(run, RUN_EXEC);
}

static enum verdict run_restart(struct run *run)
{
	if (!run_may_compute(run))
		return await(run, RUN_RESTART);
	run_tell_loss(run);
	run_start_worker(run);
	return await(run, RUN_EXEC);
}

/* A block that took its worker with it: the later ones of the response do not run. */
static enum verdict feed_loss(struct run *run)
{
	struct worker_block block = {.failed = true, .error = text_of(run->gone.text)};

	run_tell_block(run, &block);
	run_tell_loss(run);
	run->next_block = run->response.block_count;
	return then(run, RUN_EXEC);
}

static enum verdict run_feed(struct run *run)
{
	const struct worker_block *block = run->event ? run->event->block : NULL;

	if (!block)
		return feed_loss(run);
	run->worker_idle = true;
	run_tell_block(run, block);
	run_warn_wanted(run, block->error);
	run_tell_hint(run);
	run->next_block++;
	if (!block->final)
		return then(run, RUN_EXEC);
	return final(run, block->answer, block->final);
}

/* Neither an answer nor, perhaps, code: says what to do, and gives up on repetition. */
static enum verdict judge_further(struct run *run)
{
	run_tell_reply(run);
	if (run->response.block_count)
		free(take_pointer(&run->guess));
	if (run->response.block_count || run->response.cut_fence) {
		run->idle_turns = 0;
		return then(run, RUN_ASK);
	}
	if (++run->idle_turns < IDLE_TURNS_MAX)
		return then(run, RUN_ASK);
	return stop(run, RLMD_STOP_NO_CODE, stop_words(RLMD_STOP_NO_CODE));
}

static enum verdict look_up(struct run *run, int64_t timeout_ms)
{
	auto_free char *name = text_copy(run->response.value);

	run->worker_idle = false;
	worker_get(run->worker, name, timeout_ms);
	return await(run, RUN_LOOKUP);
}

static enum verdict ask_variable(struct run *run)
{
	if (run->worker)
		return look_up(run, run->job->config.block_timeout_ms);
	run_tell_loss(run);
	run_note_unknown(run, text_of(""));
	return then(run, RUN_ASK);
}

/* ENG-6: beside code it knew nothing of its outputs: they are shown, if there is a turn left. */
static enum verdict take_direct(struct run *run)
{
	struct rlmd_text value = run->response.value;

	if (!run->response.block_count || run->guess)
		return final(run, value, ANSWER_FINAL_DIRECT);
	run->guess = text_copy(value);
	run->guess_size = value.size;
	run_note(run, "confirm", text_of(""));
	return then(run, RUN_ASK);
}

static enum verdict run_judge(struct run *run)
{
	struct rlmd_text json;

	if (run->response.invented)
		run_note(run, "invented", text_of(""));
	switch (run->response.answer) {
	case RLMD_ANSWER_NONE:
		if (run_reply_json(run, &json))
			return final(run, json, ANSWER_FINAL_DIRECT);
		break;
	case RLMD_ANSWER_DIRECT:
		return take_direct(run);
	case RLMD_ANSWER_VARIABLE:
		return ask_variable(run);
	}
	return judge_further(run);
}

static enum verdict fail_forced(struct run *run, const struct rlmd_error *cause)
{
	struct rlmd_error err = run_explain_forced(run, cause);

	return fail(run, &err);
}

/* An empty answer is none. */
static enum verdict settle(struct run *run, struct rlmd_text text)
{
	if (!text.size)
		return fail_forced(run, &(struct rlmd_error){.text = "it was empty"});
	return final(run, text, ANSWER_FORCED);
}

static enum verdict run_lookup(struct run *run)
{
	const struct worker_event *event = run->event;

	if (run->reason)
		return settle(run, event && event->found ? event->value : text_of(""));
	if (!event) {
		run_tell_loss(run);
		return then(run, RUN_ASK);
	}
	run->worker_idle = true;
	if (event->found)
		return final(run, event->value, ANSWER_FINAL_VAR);
	run_note_unknown(run, event->variables);
	return then(run, RUN_ASK);
}

static enum verdict run_list(struct run *run)
{
	run_close_iteration(run);
	if (run->guess)
		return stand(run);
	/* Whoever still calls has nobody left to answer; and the listing may cost no time. */
	if (!TAILQ_EMPTY(&run->subcalls)) {
		subcalls_free(&run->subcalls);
		worker_free(take_pointer(&run->worker));
	}
	if (!run->worker || !run->worker_idle || run_listing_ms(run) < LISTING_MS_MIN)
		return then(run, RUN_FORCE);
	run->worker_idle = false;
	worker_get(run->worker, "", run_listing_ms(run));
	return await(run, RUN_FORCE);
}

static enum verdict run_force(struct run *run)
{
	bool listed = run->event && run->event->kind == WORKER_VALUE;

	run->worker_idle |= listed;
	if (listed)
		run_tell_variables(run, run->event->variables);
	run_say_forced(run);
	run_ask_model(run, LLM_FORCED, ASK_TOKENS_FORCED);
	return await(run, RUN_CLOSE);
}

static enum verdict force_again(struct run *run)
{
	run_ask_model(run, LLM_FORCED, ASK_TOKENS_FORCED);
	return await(run, RUN_CLOSE);
}

static enum verdict close_error(struct run *run, const struct rlmd_error *err)
{
	if (err->kind != RLMD_ERROR_CONTEXT_OVERFLOW || !run_say_forced_short(run))
		return fail_forced(run, err);
	return force_again(run);
}

/* No code runs any more, so code is no answer: words are asked for, once. */
static enum verdict close_wordless(struct run *run)
{
	if (run_say_forced_for_words(run, run->reply->text))
		return force_again(run);
	if (run->response.only_code)
		return fail_forced(run, &(struct rlmd_error){.text = "it was only code"});
	return fail_forced(run, &(struct rlmd_error){.text = "it held no answer"});
}

static enum verdict run_close(struct run *run)
{
	if (run->reply_error)
		return close_error(run, run->reply_error);
	run_take_reply(run);
	if (text_trim(run->reply->text).size && !response_has_words(&run->response))
		return close_wordless(run);
	if (run->cut)
		run_warn(run, "The forced answer was cut at its length limit");
	if (run->response.answer == RLMD_ANSWER_DIRECT)
		return settle(run, run->response.value);
	if (run->response.answer == RLMD_ANSWER_NONE)
		return settle(run, run->response.said);
	return run->worker_idle ? look_up(run, RUN_LISTING_MS) : settle(run, text_of(""));
}

/* Where it will not do there is another turn, a forced answer, that once more, or an error. */
static enum verdict run_check(struct run *run)
{
	const struct answer_verdict *verdict = run->verdict;
	bool forced = run->source == ANSWER_FORCED;

	if (!verdict->error && !verdict->wrong.size) {
		run_give_answer(run, verdict->answer, run->source);
		return take(run);
	}
	run_reject(run);
	if (verdict->error)
		return fail(run, verdict->error);
	if (run->error.kind)
		return then(run, RUN_FINISH);
	if (!forced)
		return then(run, run->reason ? RUN_LIST : RUN_ASK);
	return run_say_forced_for_form(run) ? force_again(run) : fail_forced(run, &run->error);
}

static enum verdict run_finish(struct run *run)
{
	run_close_iteration(run);
	budget_iteration_block(run->budget, NULL); /* warns of what the last step took */
	return DONE;
}

void run_drive(struct run *run, enum run_wake wake)
{
	static enum verdict (*const enter[])(struct run *) = {
#define X(name, fn, wake) [RUN_##name] = run_##fn,
		RUN_STATES(X)
#undef X
	};
	enum verdict verdict;

	assert(!run->driving && run_waits_for(run, wake));
	run->driving = true;
	do
		verdict = enter[run->state](run);
	while (verdict == MORE);
	run->driving = false;
	run->event = NULL;
	run->reply = NULL;
	run->reply_error = NULL;
	run->verdict = NULL;
	if (verdict == DONE)
		run_deliver(run);
}

bool run_is_forcing(const struct run *run)
{
	return run->reason || run->state == RUN_FINISH;
}

void run_give_up(struct run *run, enum rlmd_stop reason, int64_t deadline)
{
	force(run, reason, stop_words(reason));
	run->deadline = deadline;
	ask_cancel(take_pointer(&run->ask));
	answer_check_cancel(take_pointer(&run->check));
	subcalls_free(&run->subcalls);
	run->state = RUN_LIST;
}

void run_force_failed(struct run *run)
{
	ask_cancel(take_pointer(&run->ask));
	answer_check_cancel(take_pointer(&run->check));
	fail_forced(run, &(struct rlmd_error){.text = "its time was over"});
}
