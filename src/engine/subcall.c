#include "engine/subcall.h"

#include <event2/event.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/money.h"
#include "budget/budget.h"
#include "engine/room.h"
#include "engine/run.h"
#include "engine/slot.h"
#include "pool/worker.h"

struct subcall {
	struct subcall_list *list; /* lent: where we stand; the caller owns it */
	struct worker *worker;     /* lent: the list is emptied before it goes */
	struct event *posted;      /* owned: answers from the loop */
	int64_t id;
	struct errand errand;     /* what the slots share */
	struct slot *slots;       /* owned */
	size_t count, next, open; /* slots; the next to start; those that have no answer */
	TAILQ_ENTRY(subcall) entry;
};

static void subcall_free(struct subcall *subcall)
{
	TAILQ_REMOVE(subcall->list, subcall, entry);
	for (size_t i = 0; i < subcall->count; i++)
		slot_done(&subcall->slots[i]);
	grant_done(&subcall->errand.grant);
	event_free(subcall->posted);
	free(subcall->slots);
	free(subcall->errand.model);
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

/* C1: even an answer that is known at once comes from the loop. */
static void on_posted(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	subcall_answer(owner);
}

void subcalls_reply(struct subcall_list *list)
{
	struct subcall *subcall;

	TAILQ_FOREACH (subcall, list, entry)
		if (!subcall->open)
			event_active(subcall->posted, EV_TIMEOUT, 1);
}

/* Who computed while its sub-runs did would take a seat that is not its own. */
static void subcall_end(struct subcall *subcall)
{
	grant_done(&subcall->errand.grant);
	if (!subcall->errand.tasks)
		subcall_answer(subcall);
	else if (run_may_go_on(subcall->errand.caller))
		event_active(subcall->posted, EV_TIMEOUT, 1);
}

static size_t children(const struct subcall_list *list)
{
	const struct subcall *subcall;
	size_t count = 0;

	TAILQ_FOREACH (subcall, list, entry)
		for (size_t i = 0; i < subcall->next; i++)
			count += subcall->slots[i].waiting;
	return count;
}

/* So many slots of one call are open at once; and of a run's sub-runs, whatever number of calls
 * they are spread over, for each holds a share of its purse. */
static bool may_start(const struct subcall *subcall)
{
	size_t limit = (size_t)subcall->errand.room->config->max_parallel;
	size_t started = subcall->open - (subcall->count - subcall->next);

	return subcall->next < subcall->count && started < limit &&
	       (!subcall->errand.tasks || children(subcall->list) < limit);
}

static void start_more(struct subcall *subcall)
{
	while (may_start(subcall))
		slot_start(&subcall->slots[subcall->next++]);
}

static void on_slot(void *owner, struct slot *slot)
{
	struct subcall *subcall = owner;
	struct subcall_list *list = subcall->list;
	bool tasks = slot->errand->tasks;

	subcall->open--;
	if (subcall->open)
		start_more(subcall);
	else
		subcall_end(subcall);
	if (!tasks)
		return;
	TAILQ_FOREACH (subcall, list, entry)
		start_more(subcall);
}

static json_t *amount(int64_t value, bool money)
{
	if (value == BUDGET_UNLIMITED)
		return json_null();
	return money ? json_real(money_to_dollars(value)) : json_integer(value);
}

static void tell_budget(struct subcall *subcall)
{
	struct budget *budget = run_budget(subcall->errand.caller);
	struct budget_amount left = budget_remaining(budget);
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	json_t *object = json_pack(
		"{s:o, s:o, s:I, s:i, s:i, s:i}", "cost", amount(left.cost, true), "tokens",
		amount(left.tokens, false), "time_ms", (json_int_t)budget_remaining_ms(budget),
		"iterations", budget_remaining_iterations(budget), "depth",
		run_depth(subcall->errand.caller), "max_depth", budget_limits(budget)->max_depth);

	json_write(object, false, out);
	json_decref(object);
	subcall->count = 1;
	subcall->slots = xcalloc(1, sizeof *subcall->slots);
	slot_init(subcall->slots, &subcall->errand, text_of(""), NULL);
	subcall->slots[0].value = text_drain(out, &subcall->slots[0].value_size);
}

static void take_slots(struct subcall *subcall, const struct worker_call *call)
{
	subcall->count = subcall->open = call->count;
	subcall->slots = xcalloc(call->count, sizeof *subcall->slots);
	for (size_t i = 0; i < call->count; i++)
		slot_init(&subcall->slots[i], &subcall->errand, call->texts[i],
			  call->contexts ? call->contexts[i] : NULL);
}

void subcall_start(struct subcall_list *list, struct room *room, struct run *caller,
		   struct worker *worker, const struct worker_call *call)
{
	struct subcall *subcall = xcalloc(1, sizeof *subcall);
	struct errand *errand = &subcall->errand;

	subcall->list = list;
	subcall->worker = worker;
	subcall->id = call->id;
	subcall->posted = evtimer_new(room->base, on_posted, subcall);
	*errand = (struct errand){
		.room = room,
		.caller = caller,
		.tasks = call->kind == WORKER_RLM_QUERY,
		.model = xstrdup(call->model),
		.done = on_slot,
		.owner = subcall,
	};
	TAILQ_INSERT_TAIL(list, subcall, entry);
	if (call->kind == WORKER_BUDGET)
		tell_budget(subcall);
	else
		take_slots(subcall, call);
	if (errand->tasks && subcall->open)
		grant_init(&errand->grant, room, caller, call->count);
	if (subcall->open)
		start_more(subcall);
	else
		event_active(subcall->posted, EV_TIMEOUT, 1);
}
