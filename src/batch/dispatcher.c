#include "batch/dispatcher.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/text.h"
#include "batch/disposition.h"
#include "batch/job_journal.h"
#include "batch/store_explain.h"
#include "batch/turns.h"
#include "store/store.h"

/* Where the store says that a job is due, and has none to give, somebody holds it for a moment. */
enum { SOON_MS = 200 };

/* A claim on a job: asked for, at work, or being written. */
struct slot {
	TAILQ_ENTRY(slot) next;
	struct dispatcher *dispatcher;
	struct turn *turn;           /* lent */
	struct query *query;         /* lent: the claim, or what became of the job */
	struct store_claim claim;    /* job 0: it is not granted yet */
	struct job_journal *journal; /* owned */
	struct work *work;           /* owned */
	struct rlmd_text line;       /* owned until the work has it */
	int64_t attempts;
	bool lost; /* somebody else has it: nothing is written */
};

struct dispatcher {
	struct dispatcher_options options;
	struct turns turns;
	TAILQ_HEAD(, slot) slots;
	int64_t used;        /* slots */
	struct query *count; /* lent: what there is to do */
	struct query *renewal;
	struct store_claim *renewed; /* owned: what was asked for */
	struct event *wake, *renew;  /* owned */
	struct event *posted;        /* owned: looks what is to be done next */
	struct rlmd_error error;     /* why it ends before its time */
	bool looked;                 /* the store was asked since a job was begun or written last */
	bool dry;                    /* the last claim gave nothing */
	bool left;                   /* it said that there is something to wait for */
	int64_t ended, failed;       /* jobs that are over, of those that it began */
	bool draining, over;
};

static void proceed(struct dispatcher *dispatcher)
{
	if (!dispatcher->over)
		loop_post(dispatcher->posted);
}

static void free_slot(struct slot *slot)
{
	struct dispatcher *dispatcher = slot->dispatcher;

	TAILQ_REMOVE(&dispatcher->slots, slot, next);
	dispatcher->used--;
	store_forget(slot->query);
	work_free(slot->work);
	job_journal_free(slot->journal);
	free((char *)slot->line.bytes);
	free(slot);
	proceed(dispatcher);
}

/* The store does not do what it has to: all ends, and jobs wait for the next start. */
static void fail(struct dispatcher *dispatcher, const struct store_result *result)
{
	struct slot *slot;

	if (dispatcher->error.kind)
		return;
	store_explain(result, &dispatcher->error);
	dispatcher->draining = true;
	TAILQ_FOREACH (slot, &dispatcher->slots, next)
		if (slot->work)
			work_cancel(slot->work);
	proceed(dispatcher);
}

/* --- when it is enough ---------------------------------------------------------------- */

static void note_end(struct dispatcher *dispatcher, bool succeeded)
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

/* --- what became of a job ------------------------------------------------------------- */

static void on_written(void *owner, const struct store_result *result)
{
	struct slot *slot = owner;
	struct dispatcher *dispatcher = slot->dispatcher;

	slot->query = NULL;
	dispatcher->looked = false;
	if (result->fault && result->fault != STORE_REFUSED)
		fail(dispatcher, result);
	free_slot(slot);
}

static void on_finished(void *owner, const struct store_result *result)
{
	struct slot *slot = owner;
	struct dispatcher *dispatcher = slot->dispatcher;

	on_written(slot, result);
	if (!result->fault)
		dispatcher->options.wrote(dispatcher->options.owner);
}

static void finish(struct slot *slot, const struct work_end *end, bool untried)
{
	const struct store_outcome outcome = {
		.succeeded = !end->error.kind,
		.result = end->result,
		.error = text_of(end->error.kind ? rlmd_error_name(end->error.kind) : NULL),
		.cost = end->cost,
		.tokens = end->tokens,
		.trace = end->trace,
		.untried = untried,
	};

	note_end(slot->dispatcher, !end->error.kind);
	slot->query = store_finish(slot->dispatcher->options.store, &slot->claim, &outcome,
				   on_finished, slot);
}

/* Back to those that wait, as if it had not been begun; or later, as another attempt. */
static void give_back(struct slot *slot, int64_t delay_ms, enum rlmd_error_kind kind, bool counts)
{
	int64_t due_ms = clock_ms() + delay_ms;

	slot->query = store_postpone(slot->dispatcher->options.store, &slot->claim, delay_ms,
				     text_of(kind ? rlmd_error_name(kind) : NULL), counts,
				     on_written, slot);
	if (due_ms < slot->turn->due_ms)
		slot->turn->due_ms = due_ms;
}

static void retry(struct slot *slot, const struct work_end *end)
{
	uint32_t random = 0;

	if (slot->attempts >= slot->dispatcher->options.max_attempts) {
		finish(slot, end, false);
		return;
	}
	if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0)
		random = (uint32_t)clock_us();
	give_back(slot, disposition_delay(slot->attempts, random), end->error.kind, true);
}

static void trip(struct slot *slot, const struct work_end *end)
{
	struct dispatcher *dispatcher = slot->dispatcher;
	const struct dispatcher_options *options = &dispatcher->options;
	struct turn *turn = slot->turn;
	const char *provider = options->work.job.provider;

	if (turn->stop != TURN_KEY) {
		turns_stop(&dispatcher->turns, turn, TURN_KEY, INT64_MAX);
		store_breaker_open(options->store, options->batch, text_of(turn->tenant),
				   text_of(provider), text_of(end->error.text), NULL, NULL);
		options->refused(options->owner, turn->tenant, &end->error);
	}
	give_back(slot, 0, end->error.kind, false);
}

static void on_work(void *owner, const struct work_end *end)
{
	struct slot *slot = owner;

	if (slot->lost || slot->dispatcher->error.kind) {
		free_slot(slot);
		return;
	}
	switch (disposition_of(end->error.kind)) {
	case DISPOSITION_FAIL:
		finish(slot, end, false);
		break;
	case DISPOSITION_RETRY:
		retry(slot, end);
		break;
	case DISPOSITION_BREAKER:
		trip(slot, end);
		break;
	case DISPOSITION_BACK:
		give_back(slot, slot->dispatcher->draining ? 0 : SOON_MS, RLMD_ERROR_NONE, false);
		break;
	}
	work_free(take_pointer(&slot->work));
}

/* --- claims ------------------------------------------------------------------------------ */

static void on_journal(void *owner, const struct rlmd_error *err)
{
	struct slot *slot = owner;
	struct dispatcher *dispatcher = slot->dispatcher;

	if (slot->lost) {
		free_slot(slot);
		return;
	}
	if (err || dispatcher->draining) {
		if (err && !dispatcher->error.kind)
			dispatcher->error = *err;
		dispatcher->draining = true;
		give_back(slot, 0, RLMD_ERROR_NONE, false);
		return;
	}
	slot->work = work_new(&dispatcher->options.work, slot->line,
			      job_journal_hooks(slot->journal), on_work, slot);
	free((char *)slot->line.bytes);
	slot->line = (struct rlmd_text){0};
}

/* Nobody said how its last attempt ended: rlmd or the machine went with it. One such job must not
 * take down for ever who begins it. */
static void bury(struct slot *slot)
{
	struct work_end end = {.error.kind = RLMD_ERROR_NONE};
	auto_free char *result = NULL;

	error_set(&end.error, RLMD_ERROR_WORKER,
		  "begun %" PRId64
		  " times, and the last time rlmd was ended with it (killed, out of "
		  "memory, or the machine stopped): it is not begun again, as it may be the cause; "
		  "--rerun-failed tries it anew",
		  slot->attempts - 1);
	result = work_no_result(&end.error);
	end.result = text_of(result);
	finish(slot, &end, true);
}

/* Its lease was over, and it is claimed anew: by this very process, which was held up. */
static void lose(struct slot *slot)
{
	slot->lost = true;
	if (slot->work)
		work_cancel(slot->work);
}

static struct slot *find(struct dispatcher *dispatcher, int64_t job)
{
	struct slot *slot;

	TAILQ_FOREACH (slot, &dispatcher->slots, next)
		if (slot->claim.job == job && !slot->lost)
			return slot;
	return NULL;
}

static void begin(struct slot *slot, const struct store_job *job)
{
	struct dispatcher *dispatcher = slot->dispatcher;
	struct slot *older = find(dispatcher, job->id);

	if (older)
		lose(older);
	dispatcher->looked = dispatcher->dry = false;
	slot->claim = (struct store_claim){job->id, job->token};
	slot->attempts = job->attempts;
	if (slot->attempts > dispatcher->options.max_attempts) {
		bury(slot);
		return;
	}
	slot->line = text_from(xstrndup(job->line.bytes, job->line.size), job->line.size);
	slot->journal = job_journal_new(dispatcher->options.store, &slot->claim, on_journal, slot);
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
		fail(slot->dispatcher, result);
	slot->turn->ready = false;
	slot->dispatcher->dry = true;
	slot->dispatcher->looked = false;
	free_slot(slot);
}

static void claim(struct dispatcher *dispatcher, struct turn *turn)
{
	const struct dispatcher_options *options = &dispatcher->options;
	const struct rlmd_text tenant = text_of(turn->tenant);
	struct slot *slot = xcalloc(1, sizeof *slot);

	slot->dispatcher = dispatcher;
	slot->turn = turn;
	TAILQ_INSERT_TAIL(&dispatcher->slots, slot, next);
	dispatcher->used++;
	slot->query = store_claim(options->store, options->batch, &tenant, text_of(options->node),
				  1, options->lease_ms, on_claim, slot);
}

/* --- leases ----------------------------------------------------------------------------- */

static void on_renewed(void *owner, const struct store_result *result)
{
	struct dispatcher *dispatcher = owner;

	dispatcher->renewal = NULL;
	if (result->fault) {
		fail(dispatcher, result);
		return;
	}
	for (size_t i = 0; i < result->count; i++) {
		struct slot *slot = find(dispatcher, dispatcher->renewed[i].job);

		if (result->lost[i] && slot && !slot->query &&
		    slot->claim.token == dispatcher->renewed[i].token)
			lose(slot);
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

static void note_count(struct dispatcher *dispatcher, const struct store_count *count)
{
	struct turn *turn = turns_get(&dispatcher->turns, count->tenant);

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
		fail(dispatcher, result);
		return;
	}
	dispatcher->left = false;
	for (size_t i = 0; i < result->count; i++)
		note_count(dispatcher, &result->counts[i]);
	dispatcher->looked = true;
	if (!dispatcher->left)
		dispatcher->draining = true;
	proceed(dispatcher);
}

static void end(struct dispatcher *dispatcher)
{
	dispatcher->over = true;
	event_del(dispatcher->renew);
	event_del(dispatcher->wake);
	dispatcher->options.end(dispatcher->options.owner,
				dispatcher->error.kind ? &dispatcher->error : NULL);
}

static void fill(struct dispatcher *dispatcher)
{
	int64_t due_ms = turns_wake_due(&dispatcher->turns, clock_ms());
	struct timeval wait;
	struct turn *turn;

	while (dispatcher->used < dispatcher->options.max_jobs &&
	       (turn = turns_next(&dispatcher->turns)))
		claim(dispatcher, turn);
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

static void on_proceed(evutil_socket_t fd, short what, void *owner)
{
	struct dispatcher *dispatcher = owner;

	(void)fd;
	(void)what;
	if (!dispatcher->draining)
		fill(dispatcher);
	if (dispatcher->draining && !dispatcher->used)
		end(dispatcher);
	else if (!dispatcher->draining && is_idle(dispatcher))
		dispatcher->count = store_counts(dispatcher->options.store,
						 dispatcher->options.batch, on_count, dispatcher);
}

/* --- its life ------------------------------------------------------------------------------ */

struct dispatcher *dispatcher_new(const struct dispatcher_options *options)
{
	struct dispatcher *dispatcher = xcalloc(1, sizeof *dispatcher);
	struct event_base *base = options->work.base;
	const struct timeval often = clock_timeval(options->lease_ms / 3);

	dispatcher->options = *options;
	TAILQ_INIT(&dispatcher->slots);
	dispatcher->posted = event_new(base, -1, 0, on_proceed, dispatcher);
	dispatcher->wake = event_new(base, -1, 0, on_proceed, dispatcher);
	dispatcher->renew = event_new(base, -1, EV_PERSIST, on_renew, dispatcher);
	event_add(dispatcher->renew, &often);
	proceed(dispatcher);
	return dispatcher;
}

void dispatcher_free(struct dispatcher *dispatcher)
{
	struct slot *slot;

	if (!dispatcher)
		return;
	dispatcher->over = true;
	while ((slot = TAILQ_FIRST(&dispatcher->slots)))
		free_slot(slot);
	store_forget(dispatcher->count);
	store_forget(dispatcher->renewal);
	event_free(dispatcher->posted);
	event_free(dispatcher->wake);
	event_free(dispatcher->renew);
	turns_done(&dispatcher->turns);
	free(dispatcher->renewed);
	free(dispatcher);
}

void dispatcher_drain(struct dispatcher *dispatcher)
{
	dispatcher->draining = true;
	proceed(dispatcher);
}

void dispatcher_stop(struct dispatcher *dispatcher)
{
	struct slot *slot;

	TAILQ_FOREACH (slot, &dispatcher->slots, next)
		if (slot->work)
			work_cancel(slot->work);
	dispatcher_drain(dispatcher);
}
