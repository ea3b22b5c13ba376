/*
 * A prompt is one ask. A task takes the way that its call's grant gives it: it
 * stands in line for a seat, begins its sub-run when it has one, and asks once
 * more then, for what was left may be gone; or it is answered by one ask.
 */
#include "engine/slot.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/money.h"
#include "engine/ask.h"
#include "engine/brief.h"
#include "engine/room.h"
#include "engine/run.h"

enum { FALLBACK_CONTEXT_MAX = 40000 }; /* bytes of the context in an answer without a sub-run */

void slot_init(struct slot *slot, struct errand *errand, struct text text, struct memfile *context)
{
	*slot = (struct slot){
		.errand = errand,
		.text = text_copy(text),
		.size = text.size,
		.context = memfile_ref(context),
	};
}

static void wait_over(struct slot *slot)
{
	slot->waiting = false;
	run_wait_over(slot->errand->caller);
}

void slot_cancel(struct slot *slot)
{
	ask_cancel(take_pointer(&slot->ask));
	run_free(take_pointer(&slot->child));
	seat_leave(&slot->seat);
	if (slot->waiting)
		wait_over(slot);
}

void slot_done(struct slot *slot)
{
	slot_cancel(slot);
	memfile_unref(slot->context);
	free(slot->user);
	free(slot->text);
	free(slot->value);
}

static void slot_fail(struct slot *slot, const struct error *err)
{
	slot->failed = true;
	slot->error = err->kind;
	slot->value = xstrdup(err->text);
	slot->value_size = strlen(slot->value);
}

static void slot_answer(struct slot *slot, struct text text)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	if (slot->way == WAY_DOWNGRADED)
		evbuffer_add_printf(out, "[Downgraded to llm_query: %s.]\n", slot->reason);
	if (slot->way == WAY_DIRECT)
		evbuffer_add_printf(out, "[Cannot spawn sub-RLM: %s. Answering directly.]\n",
				    slot->reason);
	if (slot->forced)
		evbuffer_add_printf(out, "[The sub-RLM's budget was exhausted. Its best guess:]\n");
	text_repair(text, out);
	if (slot->cut)
		evbuffer_add_printf(out, "\n[The answer was cut at its length limit.]");
	slot->value = text_drain(out, &slot->value_size);
}

static void slot_close(struct slot *slot)
{
	slot->errand->done(slot->errand->owner, slot);
}

static void on_ask(void *owner, const struct llm_response *response, const struct error *err)
{
	struct slot *slot = owner;
	struct room *room = slot->errand->room;

	slot->ask = NULL;
	if (err) {
		slot_fail(slot, err);
	} else {
		slot->cut = response->finish == LLM_FINISH_LENGTH;
		slot_answer(slot, response->text);
		room->call_count++;
		room->call_ms += response->duration_ms;
	}
	slot_close(slot);
}

static void slot_ask(struct slot *slot, enum llm_kind kind, struct text system, struct text user)
{
	struct errand *errand = slot->errand;
	struct ask_options options = {
		.run = errand->caller,
		.number = run_next_call(errand->caller),
		.reason = slot->reason,
		.request = {.model = errand->model ? errand->model : errand->room->subcall_model,
			    .messages = slot->messages,
			    .message_count = 2,
			    .max_tokens = ASK_TOKENS_QUERY,
			    .deadline = budget_deadline(run_budget(errand->caller)),
			    .kind = kind,
			    .depth = run_depth(errand->caller),
			    .turn = run_turn(errand->caller) - 1},
	};

	slot->messages[0] = (struct llm_message){LLM_SYSTEM, system};
	slot->messages[1] = (struct llm_message){LLM_USER, user};
	slot->ask = ask_start(errand->room, &options, on_ask, slot);
}

static void warn_fallback(struct slot *slot)
{
	auto_free char *text = xasprintf(
		slot->way == WAY_DOWNGRADED ? "A sub-run was downgraded to llm_query: %s"
					    : "A sub-run was not started and answered directly: %s",
		slot->reason);

	run_warn_once(slot->errand->caller, text);
}

/* The model sees the task and what fits of the context, and answers. */
static void fall_back(struct slot *slot)
{
	const struct context *context = run_context(slot->errand->caller);
	auto_evbuffer struct evbuffer *user = evbuffer_new();
	struct memfile *file = slot->context;
	size_t size;

	grant_decline(&slot->errand->grant);
	warn_fallback(slot);
	if (!file && context->count)
		file = context->inputs[0].file;
	if (file) {
		evbuffer_add_printf(user, "Context (%zu bytes in all):\n", memfile_size(file));
		text_repair(text_clip(memfile_text(file), FALLBACK_CONTEXT_MAX), user);
		evbuffer_add(user, "\n\n", 2);
	}
	evbuffer_add_printf(user, "Task: ");
	text_repair(text_from(slot->text, slot->size), user);
	slot->user = text_drain(user, &size);
	slot_ask(slot, slot->way == WAY_DIRECT ? LLM_DIRECT : LLM_QUERY, brief_direct(),
		 text_from(slot->user, size));
}

static void on_child(void *owner, const struct run_result *result)
{
	struct slot *slot = owner;
	struct room *room = slot->errand->room;

	room->subrun_count++;
	room->subrun_ms += clock_ms() - slot->started;
	room->subrun_cost = money_add(room->subrun_cost,
				      budget_usage(run_budget(slot->child))->cost);
	slot->forced = result->forced;
	if (result->forced)
		run_warn_once(slot->errand->caller,
			      "A sub-run's budget was exhausted, its answer was forced");
	if (result->error.kind)
		slot_fail(slot, &result->error);
	else
		slot_answer(slot, result->answer);
	run_free(take_pointer(&slot->child));
	wait_over(slot);
	slot_close(slot);
}

static void start_child(struct slot *slot)
{
	struct run *caller = slot->errand->caller;
	struct context_input input;
	struct context own = {.inputs = &input, .count = 1};
	struct run_options options = {
		.parent = caller,
		.seat = &slot->seat,
		.depth = run_depth(caller) + 1,
		.task = text_from(slot->text, slot->size),
		.context = run_context(caller),
	};

	if (slot->context) {
		input = context_input_of("context", slot->context);
		options.context = &own;
	}
	grant_share(&slot->errand->grant, &options);
	budget_count_subcall(run_budget(caller), options.depth);
	slot->started = clock_ms();
	slot->child = run_start(slot->errand->room, &options, on_child, slot);
	if (slot->context)
		context_input_done(&input);
}

static void on_seat(void *owner)
{
	struct slot *slot = owner;

	slot->way = grant_way(&slot->errand->grant, &slot->reason);
	if (slot->way == WAY_SUBRUN) {
		start_child(slot);
		return;
	}
	seat_leave(&slot->seat);
	wait_over(slot);
	fall_back(slot);
}

static void start_task(struct slot *slot)
{
	struct run *caller = slot->errand->caller;

	slot->way = grant_way(&slot->errand->grant, &slot->reason);
	if (slot->way != WAY_SUBRUN) {
		fall_back(slot);
		return;
	}
	slot->waiting = true;
	run_wait(caller);
	seat_ask(&slot->seat, slot->errand->room->workers, run_depth(caller) + 1, false, on_seat,
		 slot);
}

void slot_start(struct slot *slot)
{
	if (slot->errand->tasks)
		start_task(slot);
	else
		slot_ask(slot, LLM_QUERY, brief_query(), text_from(slot->text, slot->size));
}
