#include "batch/dispatcher.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/number.h"
#include "base/text.h"
#include "batch/dispatcher_private.h"
#include "batch/purse.h"
#include "batch/scoreboard.h"
#include "batch/slot.h"
#include "batch/store_explain.h"
#include "batch/tenancies.h"
#include "batch/turns.h"
#include "store/store.h"

void dispatcher_proceed(struct dispatcher *dispatcher)
{
	if (!dispatcher->over)
		loop_post(dispatcher->posted);
}

void dispatcher_fail(struct dispatcher *dispatcher, const struct store_result *result)
{
	struct slot *slot;

	if (dispatcher->error.kind)
		return;
	store_explain(result, &dispatcher->error);
	dispatcher->draining = true;
	TAILQ_FOREACH (slot, &dispatcher->slots, next)
		if (slot->work)
			work_cancel(slot->work);
	dispatcher_proceed(dispatcher);
}

/* --- when it is enough ---------------------------------------------------------------- */

void dispatcher_note_end(struct dispatcher *dispatcher, bool succeeded)
{
	const struct halt *halt = &dispatcher->options.halt;
	int64_t failed;

	dispatcher->ended++;
	dispatcher->failed += !succeeded;
	failed = dispatcher->failed;
	if (dispatcher->draining || !halt->failures || failed < halt->failures ||
	    100 * failed < halt->percent * dispatcher->ended)
		return;
	dispatcher->draining = true;
	dispatcher->options.halted(dispatcher->options.owner, failed, dispatcher->ended);
}

/* --- claims ------------------------------------------------------------------------------ */

static struct slot *find(struct dispatcher *dispatcher, int64_t job)
{
	struct slot *slot;

	TAILQ_FOREACH (slot, &dispatcher->slots, next)
		if (slot->claim.job == job && !slot->lost)
			return slot;
	return NULL;
}

/* One that is claimed anew was this very process's, which was held up. */
static void begin(struct slot *slot, const struct store_job *job)
{
	struct dispatcher *dispatcher = slot->dispatcher;
	struct slot *older = find(dispatcher, job->id);

	if (older)
		slot_lose(older);
	dispatcher->looked = dispatcher->dry = false;
	slot_begin(slot, job);
}

static void on_claim(void *owner, const struct store_result *result)
{
	struct slot *slot = owner;

	slot->query = NULL;
	if (!result->fault && result->count) {
		begin(slot, &result->jobs[0]);
		return;
	}
	if (result->fault)
		dispatcher_fail(slot->dispatcher, result);
	slot->turn->ready = false;
	slot->dispatcher->dry = true;
	slot->dispatcher->looked = false;
	slot_free(slot);
}

static void claim(struct dispatcher *dispatcher, struct turn *turn)
{
	const struct dispatcher_options *options = &dispatcher->options;
	const struct rlmd_text tenant = text_of(turn->tenant);
	struct slot *slot = xcalloc(1, sizeof *slot);

	slot->dispatcher = dispatcher;
	slot->turn = turn;
	slot->purse = purse_get(dispatcher->purse, turn->tenant);
	slot->account = purse_use(slot->purse);
	TAILQ_INSERT_TAIL(&dispatcher->slots, slot, next);
	dispatcher->used++;
	turn->at_work++;
	headroom_begin(&dispatcher->headroom);
	slot->query = store_claim(options->store, options->batch, &tenant, text_of(options->node),
				  1, options->lease_ms, on_claim, slot);
}

/* --- leases ----------------------------------------------------------------------------- */

static void on_renewed(void *owner, const struct store_result *result)
{
	struct dispatcher *dispatcher = owner;

	dispatcher->renewal = NULL;
	if (result->fault) {
		dispatcher_fail(dispatcher, result);
		return;
	}
	for (size_t i = 0; i < result->count; i++) {
		struct slot *slot = find(dispatcher, dispatcher->renewed[i].job);

		if (result->lost[i] && slot && !slot->query &&
		    slot->claim.token == dispatcher->renewed[i].token)
			slot_lose(slot);
	}
}

static void on_renew(evutil_socket_t fd, short what, void *owner)
{
	struct dispatcher *dispatcher = owner;
	struct slot *slot;
	size_t count = 0;

	(void)fd;
	(void)what;
	if (dispatcher->renewal || dispatcher->error.kind)
		return;
	dispatcher->renewed = xreallocarray(dispatcher->renewed, (size_t)dispatcher->used + 1,
					    sizeof *dispatcher->renewed);
	TAILQ_FOREACH (slot, &dispatcher->slots, next)
		if (slot->claim.job && !slot->lost)
			dispatcher->renewed[count++] = slot->claim;
	if (count)
		dispatcher->renewal = store_renew(dispatcher->options.store, dispatcher->renewed,
						  count, dispatcher->options.lease_ms, on_renewed,
						  dispatcher);
}

/* --- what is next ------------------------------------------------------------------------ */

/* What a tenant has of its own; what that lacks keeps its jobs from being begun. */
static void settle(struct dispatcher *dispatcher, struct turn *turn)
{
	const struct dispatcher_options *options = &dispatcher->options;

	if (turn->tenancy)
		return;
	turn->tenancy = tenancies_get(options->tenancies, text_of(turn->tenant));
	turn->weight = tenancy_weight(turn->tenancy);
	if (!turn->tenancy->unable.kind)
		return;
	if (!turn->tenancy->settings) { /* what the command itself has is no better for others */
		dispatcher->error = turn->tenancy->unable;
		dispatcher->draining = true;
		return;
	}
	turns_stop(&dispatcher->turns, turn, TURN_UNABLE, INT64_MAX);
	scoreboard_explain(options->board, turn->tenant, turn->tenancy->unable.text);
	options->refused(options->owner, turn->tenant, &turn->tenancy->unable);
}

static void note_count(struct dispatcher *dispatcher, const struct store_count *count)
{
	struct turn *turn = turns_get(&dispatcher->turns, count->tenant);

	if (count->due_ms != INT64_MAX)
		settle(dispatcher, turn);
	if (count->due_ms == INT64_MAX || turn_is_over(turn))
		return;
	dispatcher->left = true;
	turn->due_ms = clock_ms() + (count->due_ms > 0 ? count->due_ms
				     : dispatcher->dry ? SOON_MS
						       : 0);
}

static void on_count(void *owner, const struct store_result *result)
{
	struct dispatcher *dispatcher = owner;

	dispatcher->count = NULL;
	if (result->fault) {
		dispatcher_fail(dispatcher, result);
		return;
	}
	dispatcher->look_took_ms = clock_ms() - dispatcher->looked_ms;
	scoreboard_count(dispatcher->options.board, result->counts, result->count);
	dispatcher->left = false;
	for (size_t i = 0; i < result->count; i++)
		note_count(dispatcher, &result->counts[i]);
	dispatcher->looked = true;
	if (!dispatcher->left)
		dispatcher->draining = true;
	dispatcher_proceed(dispatcher);
}

static void end(void *owner)
{
	struct dispatcher *dispatcher = owner;

	dispatcher->over = true;
	event_del(dispatcher->renew);
	event_del(dispatcher->wake);
	event_del(dispatcher->look);
	dispatcher->options.end(dispatcher->options.owner,
				dispatcher->error.kind ? &dispatcher->error : NULL);
}

/* There is money for a job of it; else it has no turn for a while, or any more. */
static bool can_pay(struct dispatcher *dispatcher, struct turn *turn)
{
	struct dispatcher_options *options = &dispatcher->options;
	struct purse_lack lack = {.again_ms = clock_ms() + options->lease_ms};
	auto_free char *why = NULL;

	if (purse_look(purse_get(dispatcher->purse, turn->tenant), &lack) == PURSE_READY)
		return true;
	why = lack.why;
	turns_stop(&dispatcher->turns, turn, TURN_MONEY, lack.again_ms);
	if (!why)
		return false;
	dispatcher->looked = false;
	scoreboard_explain(options->board, turn->tenant, why);
	if (!lack.told)
		options->capped(options->owner, why);
	return false;
}

static void tell_once(struct dispatcher *dispatcher, bool *told, const char *text)
{
	if (!*told)
		dispatcher->options.tell(dispatcher->options.owner, text);
	*told = true;
}

/* Whether there is memory for one more job; the first one always has it. */
static bool has_room(struct dispatcher *dispatcher)
{
	if (dispatcher->used >= dispatcher->options.max_jobs)
		return false;
	if (!dispatcher->used || headroom_admits(&dispatcher->headroom, clock_ms()))
		return true;
	if (turns_any(&dispatcher->turns))
		tell_once(dispatcher, &dispatcher->told_memory,
			  "fewer jobs are begun than -j allows, as there is too little memory "
			  "beside what --reserve-memory leaves");
	return false;
}

/* Its provider may want no more work for a while: jobs wait in the store, and not each in a worker
 * of its own. */
static bool is_busy(struct dispatcher *dispatcher, struct turn *turn)
{
	const struct work_setting *work = &dispatcher->options.work;
	const char *own = turn->tenancy ? turn->tenancy->provider : NULL;
	const char *provider = own ? own : work->job.provider;
	int64_t wait_ms = rlmd_engine_provider_wait(work->engine, provider);
	auto_free char *text = NULL;

	if (!wait_ms)
		return false;
	turns_stop(&dispatcher->turns, turn, TURN_BUSY, clock_ms() + wait_ms);
	text = xasprintf("%s limits the rate, or is busy: no job of it is begun until it may be "
			 "asked again",
			 provider);
	tell_once(dispatcher, &dispatcher->told_busy, text);
	return true;
}

/* When there may be more to begin: a turn comes by itself, or memory is given back by others. */
static int64_t next_ms(struct dispatcher *dispatcher, bool room)
{
	int64_t due_ms = turns_wake_due(&dispatcher->turns, clock_ms());
	int64_t again_ms = clock_ms() + ROOM_MS;

	return room || dispatcher->used >= dispatcher->options.max_jobs || due_ms < again_ms
		       ? due_ms
		       : again_ms;
}

static void fill(struct dispatcher *dispatcher)
{
	struct timeval wait;
	struct turn *turn;
	int64_t due_ms;
	bool room;

	turns_wake_due(&dispatcher->turns, clock_ms());
	while ((room = has_room(dispatcher)) &&
	       (turn = turns_next(&dispatcher->turns,
				  dispatcher->options.max_jobs - dispatcher->used)))
		if (!is_busy(dispatcher, turn) && can_pay(dispatcher, turn))
			claim(dispatcher, turn);
	due_ms = next_ms(dispatcher, room);
	if (due_ms == INT64_MAX)
		return;
	wait = clock_timeval(due_ms - clock_ms());
	event_add(dispatcher->wake, &wait);
}

/* Whether only the store knows what is left to do: it is asked once after each change. */
static bool is_idle(const struct dispatcher *dispatcher)
{
	return dispatcher->used < dispatcher->options.max_jobs && !dispatcher->count &&
	       !dispatcher->looked;
}

static void look(struct dispatcher *dispatcher)
{
	dispatcher->looked_ms = clock_ms();
	dispatcher->count = store_counts(dispatcher->options.store, dispatcher->options.batch,
					 on_count, dispatcher);
}

/* What is left of money is given back first. */
static void begin_end(struct dispatcher *dispatcher)
{
	if (!dispatcher->closing)
		purse_close(dispatcher->purse);
	dispatcher->closing = true;
}

static void on_proceed(evutil_socket_t fd, short what, void *owner)
{
	struct dispatcher *dispatcher = owner;

	(void)fd;
	(void)what;
	if (!dispatcher->draining)
		fill(dispatcher);
	if (dispatcher->draining && !dispatcher->used)
		begin_end(dispatcher);
	else if (!dispatcher->draining && is_idle(dispatcher))
		look(dispatcher);
}

/* Whoever watches is shown what others do, too: now and then, as all jobs are read for it. */
static bool is_stale(const struct dispatcher *dispatcher)
{
	int64_t every_ms = int64_max(RECOUNT_MS, RECOUNT_TIMES * dispatcher->look_took_ms);

	return !dispatcher->draining && !dispatcher->count &&
	       clock_ms() - dispatcher->looked_ms >= every_ms;
}

static void on_look(evutil_socket_t fd, short what, void *owner)
{
	struct dispatcher *dispatcher = owner;

	dispatcher->looked = false;
	if (is_stale(dispatcher))
		look(dispatcher);
	on_proceed(fd, what, dispatcher);
}

/* --- money ------------------------------------------------------------------------------- */

static void on_money(void *owner, const char *tenant)
{
	struct dispatcher *dispatcher = owner;

	for (size_t i = 0; i < dispatcher->turns.count; i++) {
		struct turn *turn = dispatcher->turns.tenants[i];

		if (turn->stop == TURN_MONEY && (!tenant || !strcmp(turn->tenant, tenant)))
			turns_stop(&dispatcher->turns, turn, TURN_GOES_ON, 0);
	}
	dispatcher_proceed(dispatcher);
}

static void on_no_store(void *owner, const struct store_result *result)
{
	dispatcher_fail(owner, result);
}

static struct purse *purse_for(struct dispatcher *dispatcher)
{
	const struct dispatcher_options *options = &dispatcher->options;
	const struct purse_options purse = {
		.base = options->work.base,
		.store = options->store,
		.batch = options->batch,
		.node = options->node,
		.job_lease_ms = options->lease_ms,
		.limit = options->limit,
		.tenants = options->tenants,
		.keeps = options->keeps_limits,
		.changed = on_money,
		.failed = on_no_store,
		.closed = end,
		.owner = dispatcher,
	};

	return purse_new(&purse);
}

/* --- its life ------------------------------------------------------------------------------ */

struct dispatcher *dispatcher_new(const struct dispatcher_options *options)
{
	struct dispatcher *dispatcher = xcalloc(1, sizeof *dispatcher);
	struct event_base *base = options->work.base;
	const struct timeval often = clock_timeval(options->lease_ms / 3);

	dispatcher->options = *options;
	dispatcher->headroom = (struct headroom){.places = &headroom_here,
						 .reserve = options->reserve};
	TAILQ_INIT(&dispatcher->slots);
	dispatcher->posted = event_new(base, -1, 0, on_proceed, dispatcher);
	dispatcher->wake = event_new(base, -1, 0, on_proceed, dispatcher);
	dispatcher->look = event_new(base, -1, 0, on_look, dispatcher);
	dispatcher->renew = event_new(base, -1, EV_PERSIST, on_renew, dispatcher);
	dispatcher->purse = purse_for(dispatcher);
	event_add(dispatcher->renew, &often);
	dispatcher_proceed(dispatcher);
	return dispatcher;
}

void dispatcher_free(struct dispatcher *dispatcher)
{
	struct slot *slot;

	if (!dispatcher)
		return;
	dispatcher->over = true;
	while ((slot = TAILQ_FIRST(&dispatcher->slots)))
		slot_free(slot);
	store_forget(dispatcher->count);
	store_forget(dispatcher->renewal);
	purse_free(dispatcher->purse);
	event_free(dispatcher->posted);
	event_free(dispatcher->wake);
	event_free(dispatcher->look);
	event_free(dispatcher->renew);
	turns_done(&dispatcher->turns);
	free(dispatcher->renewed);
	free(dispatcher);
}

void dispatcher_show(const struct dispatcher *dispatcher)
{
	const struct slot *slot;

	TAILQ_FOREACH (slot, &dispatcher->slots, next)
		if (slot->work && slot->shown)
			work_status(slot->work, &slot->shown->status);
	scoreboard_look(dispatcher->options.board, &dispatcher->turns);
	dispatcher->options.board->draining = dispatcher->draining;
}

void dispatcher_look(struct dispatcher *dispatcher)
{
	int64_t every_ms = int64_max(LOOK_MS, LOOK_TIMES * dispatcher->look_took_ms);
	int64_t wait_ms = dispatcher->looked_ms + every_ms - clock_ms();
	struct timeval wait = clock_timeval(wait_ms > 0 ? wait_ms : 0);

	if (!dispatcher->over && !event_pending(dispatcher->look, EV_TIMEOUT, NULL))
		event_add(dispatcher->look, &wait);
}

void dispatcher_drain(struct dispatcher *dispatcher)
{
	dispatcher->draining = true;
	dispatcher_proceed(dispatcher);
}

void dispatcher_stop(struct dispatcher *dispatcher)
{
	struct slot *slot;

	TAILQ_FOREACH (slot, &dispatcher->slots, next)
		if (slot->work)
			work_cancel(slot->work);
	dispatcher_drain(dispatcher);
}
