#include "engine/subcall.h"

#include <event2/event.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/money.h"
#include "engine/ask.h"
#include "engine/brief.h"
#include "engine/record.h"
#include "engine/room.h"
#include "engine/run.h"
#include "pool/worker.h"

enum {
	DIRECT_CONTEXT_MAX = 40000, /* bytes of the context in an answer without a sub-run */
	SUBRUNS_ALIVE_MAX = 16,     /* of all depths; beyond it tasks are answered directly */
	SUBRUN_TOKENS_MIN = 4000,   /* a grant of less does not pay for one turn */
};

/* One prompt or task, and what became of it. */
struct slot {
	struct subcall *subcall; /* lent: the one that we are part of */
	char *text;              /* owned */
	size_t size;
	struct memfile *context;        /* referenced; NULL: the caller's own */
	struct llm_message messages[2]; /* lent to the ask */
	char *direct;                   /* owned: the user message of a direct answer */
	const char *blocked;            /* static: why there is no sub-run */
	bool forced, cut;               /* the answer is a guess, or not all of it */
	struct ask *ask;                /* owned while it is under way */
	struct run *child;              /* owned likewise */
	int64_t started;
	bool failed;
	enum error_kind error;
	char *value; /* owned: the answer, or what went wrong */
	size_t value_size;
};

struct subcall {
	struct subcall_list *list; /* lent: where we stand */
	struct room *room;         /* lent */
	struct run *caller;        /* lent: it owns the list */
	struct worker *worker;     /* lent: the list is emptied before it goes */
	struct event *posted;      /* owned: answers from the loop where nothing is to be awaited */
	enum worker_call_kind kind;
	int64_t id;
	char *model;              /* owned; NULL: the one for sub-calls */
	struct slot *slots;       /* owned */
	size_t count, next, open; /* slots; the next to start; those that have no answer */
	TAILQ_ENTRY(subcall) entry;
};

static void slot_done(struct slot *slot)
{
	ask_cancel(slot->ask);
	run_free(slot->child);
	memfile_unref(slot->context);
	free(slot->direct);
	free(slot->text);
	free(slot->value);
}

static void subcall_free(struct subcall *subcall)
{
	TAILQ_REMOVE(subcall->list, subcall, entry);
	for (size_t i = 0; i < subcall->count; i++)
		slot_done(&subcall->slots[i]);
	event_free(subcall->posted);
	free(subcall->slots);
	free(subcall->model);
	free(subcall);
}

void subcalls_free(struct subcall_list *list)
{
	struct subcall *subcall;

	while ((subcall = TAILQ_FIRST(list)))
		subcall_free(subcall);
}

static void subcall_answer(struct subcall *subcall)
{
	struct worker_slot *slots = xcalloc(subcall->count, sizeof *slots);

	for (size_t i = 0; i < subcall->count; i++) {
		const struct slot *slot = &subcall->slots[i];

		slots[i].failed = slot->failed;
		slots[i].kind = slot->error;
		slots[i].value = text_from(slot->value, slot->value_size);
		slots[i].message = slot->value;
	}
	worker_reply(subcall->worker, subcall->id, slots, subcall->count);
	free(slots);
	subcall_free(subcall);
}

static void subcall_start_more(struct subcall *subcall);
static void start_waiting(struct subcall_list *list);

/* The slot has its answer; with the last one the call has. Both may be gone after this. */
static void slot_close(struct slot *slot)
{
	struct subcall *subcall = slot->subcall;

	subcall->open--;
	if (subcall->open)
		subcall_start_more(subcall);
	else
		subcall_answer(subcall);
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

	if (slot->blocked)
		evbuffer_add_printf(out, "[Cannot spawn sub-RLM: %s. Answering directly.]\n",
				    slot->blocked);
	if (slot->forced)
		evbuffer_add_printf(out, "[The sub-RLM's budget was exhausted. Its best guess:]\n");
	text_repair(text, out);
	if (slot->cut)
		evbuffer_add_printf(out, "\n[The answer was cut at its length limit.]");
	slot->value = text_drain(out, &slot->value_size);
}

static void on_ask(void *owner, const struct llm_response *response, const struct error *err)
{
	struct slot *slot = owner;
	struct room *room = slot->subcall->room;

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
	struct subcall *subcall = slot->subcall;
	struct ask_options options = {
		.budget = run_budget(subcall->caller),
		.run = run_id(subcall->caller),
		.number = run_next_call(subcall->caller),
		.request = {.model = subcall->model ? subcall->model : subcall->room->subcall_model,
			    .messages = slot->messages,
			    .message_count = 2,
			    .max_tokens = ASK_TOKENS_QUERY,
			    .deadline = budget_deadline(run_budget(subcall->caller)),
			    .kind = kind,
			    .depth = run_depth(subcall->caller),
			    .turn = run_turn(subcall->caller) - 1},
	};

	slot->messages[0] = (struct llm_message){LLM_SYSTEM, system};
	slot->messages[1] = (struct llm_message){LLM_USER, user};
	slot->ask = ask_start(subcall->room, &options, on_ask, slot);
}

static void start_query(struct slot *slot)
{
	slot_ask(slot, LLM_QUERY, brief_query(), text_from(slot->text, slot->size));
}

/* ENG-13: no sub-run is possible, so the model sees what fits of the context and answers. */
static void start_direct(struct slot *slot, const char *blocked)
{
	const struct context *context = run_context(slot->subcall->caller);
	auto_evbuffer struct evbuffer *user = evbuffer_new();
	struct memfile *file = slot->context;
	size_t size;

	if (!file && context->count)
		file = context->inputs[0].file;
	if (file) {
		evbuffer_add_printf(user, "Context (%zu bytes in all):\n", memfile_size(file));
		text_repair(text_clip(memfile_text(file), DIRECT_CONTEXT_MAX), user);
		evbuffer_add(user, "\n\n", 2);
	}
	evbuffer_add_printf(user, "Task: ");
	text_repair(text_from(slot->text, slot->size), user);
	slot->direct = text_drain(user, &size);
	slot->blocked = blocked;
	slot_ask(slot, LLM_DIRECT, brief_direct(), text_from(slot->direct, size));
}

static void on_child(void *owner, const struct run_result *result)
{
	struct slot *slot = owner;
	struct room *room = slot->subcall->room;
	struct subcall_list *list = slot->subcall->list;
	const struct budget_usage *usage = budget_usage(run_budget(slot->child));

	room->subrun_count++;
	room->subrun_ms += clock_ms() - slot->started;
	room->subrun_cost = money_add(room->subrun_cost, usage->cost);
	slot->forced = result->forced;
	if (result->forced)
		run_warn(slot->subcall->caller,
			 "A sub-run's budget was exhausted, its answer was forced");
	if (result->error.kind)
		slot_fail(slot, &result->error);
	else
		slot_answer(slot, result->answer);
	run_free(take_pointer(&slot->child));
	slot_close(slot);
	start_waiting(list);
}

/* Why a sub-run would be of no use, or of harm; NULL: it may begin. */
static const char *subrun_block(const struct room *room, struct run *caller)
{
	struct budget *budget = run_budget(caller);
	struct budget_amount left = budget_remaining(budget);
	const char *blocked = budget_subcall_block(budget, run_depth(caller));
	int alive = 0;
	int64_t cost;

	if (blocked)
		return blocked;
	for (int depth = 1; depth < RUN_DEPTH_MAX; depth++)
		alive += room->runs_alive[depth];
	if (alive >= SUBRUNS_ALIVE_MAX)
		return "Too many sub-runs at once";
	if (left.tokens != BUDGET_UNLIMITED && left.tokens / 2 < SUBRUN_TOKENS_MIN)
		return "Token budget exhausted";
	if (left.cost != BUDGET_UNLIMITED &&
	    llm_price(room->llm, room->subcall_model, SUBRUN_TOKENS_MIN, 0, &cost) &&
	    left.cost / 2 < cost)
		return "Cost budget exhausted";
	return NULL;
}

static void start_child(struct slot *slot)
{
	struct run *caller = slot->subcall->caller;
	const char *blocked = subrun_block(slot->subcall->room, caller);
	struct context_input input;
	struct context own = {.inputs = &input, .count = 1};
	struct run_options options = {
		.parent_budget = run_budget(caller),
		.parent_id = run_id(caller),
		.depth = run_depth(caller) + 1,
		.task = text_from(slot->text, slot->size),
		.context = run_context(caller),
	};

	if (blocked) {
		start_direct(slot, blocked);
		return;
	}
	if (slot->context) {
		input = context_input_of("context", slot->context);
		options.context = &own;
	}
	budget_count_subcall(run_budget(caller), options.depth);
	slot->started = clock_ms();
	slot->child = run_start(slot->subcall->room, &options, on_child, slot);
	if (slot->context)
		context_input_done(&input);
}

static size_t children(const struct subcall_list *list)
{
	const struct subcall *subcall;
	size_t count = 0;

	TAILQ_FOREACH (subcall, list, entry)
		for (size_t i = 0; i < subcall->next; i++)
			count += subcall->slots[i].child != NULL;
	return count;
}

/* So many slots of one call are open at once; and of a run's sub-runs, whatever number of calls
 * they are spread over, for each has a worker. */
static bool may_start(const struct subcall *subcall)
{
	size_t limit = (size_t)subcall->room->config->max_parallel;
	size_t started = subcall->open - (subcall->count - subcall->next);

	return subcall->next < subcall->count && started < limit &&
	       (subcall->kind != WORKER_RLM_QUERY || children(subcall->list) < limit);
}

static void subcall_start_more(struct subcall *subcall)
{
	while (may_start(subcall)) {
		struct slot *slot = &subcall->slots[subcall->next++];

		if (subcall->kind == WORKER_RLM_QUERY)
			start_child(slot);
		else
			start_query(slot);
	}
}

static void start_waiting(struct subcall_list *list)
{
	struct subcall *subcall;

	TAILQ_FOREACH (subcall, list, entry)
		subcall_start_more(subcall);
}

static json_t *amount(int64_t value, bool money)
{
	if (value == BUDGET_UNLIMITED)
		return json_null();
	return money ? json_real(money_to_dollars(value)) : json_integer(value);
}

static void tell_budget(struct subcall *subcall)
{
	struct budget *budget = run_budget(subcall->caller);
	struct budget_amount left = budget_remaining(budget);
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	json_t *object = json_pack(
		"{s:o, s:o, s:I, s:i, s:i, s:i}", "cost", amount(left.cost, true), "tokens",
		amount(left.tokens, false), "time_ms", (json_int_t)budget_remaining_ms(budget),
		"iterations", budget_remaining_iterations(budget), "depth",
		run_depth(subcall->caller), "max_depth", budget_limits(budget)->max_depth);

	json_write(object, false, out);
	json_decref(object);
	subcall->count = 1;
	subcall->slots = xcalloc(1, sizeof *subcall->slots);
	subcall->slots[0].value = text_drain(out, &subcall->slots[0].value_size);
}

/* C1: even an answer that is known at once comes from the loop. */
static void on_posted(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	subcall_answer(owner);
}

static void take_slots(struct subcall *subcall, const struct worker_call *call)
{
	subcall->count = subcall->open = call->count;
	subcall->slots = xcalloc(call->count, sizeof *subcall->slots);
	for (size_t i = 0; i < call->count; i++) {
		struct slot *slot = &subcall->slots[i];

		slot->subcall = subcall;
		slot->text = text_copy(call->texts[i]);
		slot->size = call->texts[i].size;
		if (call->contexts)
			slot->context = memfile_ref(call->contexts[i]);
	}
}

void subcall_start(struct subcall_list *list, struct room *room, struct run *caller,
		   struct worker *worker, const struct worker_call *call)
{
	struct subcall *subcall = xcalloc(1, sizeof *subcall);

	*subcall = (struct subcall){
		.list = list,
		.room = room,
		.caller = caller,
		.worker = worker,
		.kind = call->kind,
		.id = call->id,
		.model = xstrdup(call->model),
	};
	subcall->posted = evtimer_new(room->base, on_posted, subcall);
	TAILQ_INSERT_TAIL(list, subcall, entry);
	if (call->kind == WORKER_BUDGET)
		tell_budget(subcall);
	else
		take_slots(subcall, call);
	if (subcall->open)
		subcall_start_more(subcall);
	else
		event_active(subcall->posted, EV_TIMEOUT, 1);
}
