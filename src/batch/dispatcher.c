#include "batch/dispatcher.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/number.h"
#include "base/text.h"
#include "base/timer.h"
#include "batch/accounts.h"
#include "batch/batch_job.h"
#include "batch/batch_store.h"
#include "batch/concurrency.h"
#include "batch/fair_queue.h"
#include "batch/job_journal.h"
#include "batch/lease.h"
#include "batch/retry.h"
#include "batch/scoreboard.h"
#include "batch/tenancies.h"
#include "store/store.h"

enum {
	SOON_MS = 200, /* until a due job is asked for again that another transaction has locked */
	SHORT_MS = 1000, /* until a job is due that was given back for want of money or room */
	ROOM_MS = 1000,  /* until it is looked whether there is memory again */
	/* To see what others have done all jobs are counted: at most a fiftieth of the time; and
	 * less often for those alone who watch. */
	LOOK_MS = 100,
	LOOK_TIMES = 50,
	RECOUNT_MS = 15000,
	RECOUNT_TIMES = 200,
};

/* A claim on a job: asked for, at work, or being written. */
struct attempt {
	TAILQ_ENTRY(attempt) next;
	struct dispatcher *dispatcher;
	struct fair_tenant *tenant;   /* lent */
	struct query *query;          /* lent: the claim, or what became of the job */
	struct store_claim claim;     /* job 0: it is not granted yet */
	struct job_journal *journal;  /* owned */
	struct batch_job *job;        /* owned */
	struct scoreboard_job *shown; /* lent: what is seen of it; NULL: it is not granted yet */
	struct rlmd_text line;        /* owned until the job has it */
	struct lease *pays;           /* lent: the lowest account that it pays out of */
	int64_t number;               /* of the attempt, from 1 */
	struct lease_job took;        /* what it cost, once it has ended */
	bool lost;                    /* somebody else has it: nothing is written */
	bool suspect; /* it was at work when its process died, and may be the cause */
	bool held;    /* it waits until it is alone */
};

struct dispatcher {
	struct dispatcher_options options;
	struct fair_queue queue;
	struct accounts *accounts; /* owned */
	TAILQ_HEAD(, attempt) attempts;
	int64_t used;        /* attempts */
	struct query *count; /* lent: what there is to do */
	struct query *renewal;
	struct store_claim *renewed; /* owned: what was asked for */
	struct event *renew;         /* owned */
	struct timer *wake;          /* owned */
	struct timer *posted;        /* owned: looks what is to be done next */
	struct timer *look;          /* owned: asks the store again, as others have written */
	int64_t looked_ms;           /* when it was asked last */
	int64_t look_took_ms;        /* how long that took */
	struct rlmd_error error;     /* why it ends before its time */
	bool looked;                 /* the store was asked since a job was begun or written last */
	bool dry;                    /* the last claim gave nothing */
	bool left;                   /* it said that there is something to wait for */
	int64_t ended, failed;       /* jobs that are over, of those that it began */
	struct concurrency concurrency;
	bool memory_reported, busy_reported; /* why jobs are not begun */
	bool draining, closing, over;        /* closing: money is given back */
};

/* It looks what is to be done next, from the loop. */
static void proceed(struct dispatcher *dispatcher)
{
	if (!dispatcher->over)
		timer_post(dispatcher->posted);
}

static void cancel_all(struct dispatcher *dispatcher)
{
	struct attempt *attempt;

	TAILQ_FOREACH (attempt, &dispatcher->attempts, next)
		if (attempt->job)
			batch_job_cancel(attempt->job);
}

/* The store does not do what it has to: all ends, and jobs wait for the next start. */
static void fail(void *owner, const struct store_result *result)
{
	struct dispatcher *dispatcher = owner;

	if (dispatcher->error.kind)
		return;
	batch_store_explain(result, &dispatcher->error);
	dispatcher->draining = true;
	cancel_all(dispatcher);
	proceed(dispatcher);
}

/* A tenant's jobs may be begun, or not, by what money there is; NULL: anybody's. */
static void note_money(void *owner, const char *name)
{
	struct dispatcher *dispatcher = owner;

	for (size_t i = 0; i < dispatcher->queue.count; i++) {
		struct fair_tenant *tenant = dispatcher->queue.tenants[i];

		if (tenant->stop == TENANT_STOP_MONEY && (!name || !strcmp(tenant->name, name)))
			fair_queue_stop(&dispatcher->queue, tenant, TENANT_STOP_NONE, 0);
	}
	proceed(dispatcher);
}

/* --- when it is enough ---------------------------------------------------------------- */

/* A job is over: there may be enough that failed. */
static void note_end(struct dispatcher *dispatcher, bool succeeded)
{
	const struct halt *halt = &dispatcher->options.halt;
	int64_t failed;

	concurrency_raise(&dispatcher->concurrency);
	dispatcher->ended++;
	failed = dispatcher->failed += !succeeded;
	if (dispatcher->draining || !halt->failures || failed < halt->failures ||
	    100 * failed < halt->percent * dispatcher->ended)
		return;
	dispatcher->draining = true;
	dispatcher->options.halted(dispatcher->options.owner, failed, dispatcher->ended);
}

static void drop(struct attempt *attempt)
{
	struct dispatcher *dispatcher = attempt->dispatcher;
	bool tight;

	TAILQ_REMOVE(&dispatcher->attempts, attempt, next);
	dispatcher->used--;
	attempt->tenant->at_work--;
	store_forget(attempt->query);
	scoreboard_leave(attempt->shown, false);
	batch_job_free(attempt->job);
	job_journal_free(attempt->journal);
	tight = lease_leave(attempt->pays, &attempt->took);
	note_money(dispatcher, tight ? NULL : attempt->tenant->name);
	free((char *)attempt->line.bytes);
	free(attempt);
	proceed(dispatcher);
}

/* --- what became of a job ------------------------------------------------------------- */

static void on_written(void *owner, const struct store_result *result)
{
	struct attempt *attempt = owner;
	struct dispatcher *dispatcher = attempt->dispatcher;

	attempt->query = NULL;
	dispatcher->looked = false;
	if (result->fault && result->fault != STORE_REFUSED)
		fail(dispatcher, result);
	scoreboard_leave(take_pointer(&attempt->shown), !result->fault);
	drop(attempt);
}

static void on_finished(void *owner, const struct store_result *result)
{
	struct attempt *attempt = owner;
	struct dispatcher *dispatcher = attempt->dispatcher;

	on_written(attempt, result);
	if (!result->fault)
		dispatcher->options.wrote(dispatcher->options.owner);
}

static void finish(struct attempt *attempt, const struct batch_job_end *end, bool untried)
{
	const struct store_outcome outcome = {
		.succeeded = !end->error.kind,
		.result = end->result,
		.error = text_of(end->error.kind ? rlmd_error_name(end->error.kind)
				 : end->degraded ? STORE_DEGRADED
						 : NULL),
		.cost = end->cost,
		.tokens = end->tokens,
		.trace = end->trace,
		.attempts = untried ? -1 : 0,
	};

	note_end(attempt->dispatcher, !end->error.kind);
	attempt->took.succeeded = !end->error.kind;
	scoreboard_end(attempt->shown, end,
		       end->error.kind ? SCOREBOARD_FAILED : SCOREBOARD_SUCCEEDED);
	attempt->query = store_finish(attempt->dispatcher->options.store, &attempt->claim, &outcome,
				      on_finished, attempt);
}

/* Back to those that wait, as if it had not been begun; or later, as another attempt. */
static void give_back(struct attempt *attempt, int64_t delay_ms, enum rlmd_error_kind kind,
		      bool counts)
{
	int64_t due_ms = clock_ms() + delay_ms;

	attempt->query = store_postpone(attempt->dispatcher->options.store, &attempt->claim,
					delay_ms, text_of(kind ? rlmd_error_name(kind) : NULL),
					counts, on_written, attempt);
	if (due_ms < attempt->tenant->due_ms)
		attempt->tenant->due_ms = due_ms;
}

static void retry(struct attempt *attempt, const struct batch_job_end *end)
{
	uint32_t random = 0;

	if (attempt->number >= attempt->dispatcher->options.max_attempts) {
		finish(attempt, end, false);
		return;
	}
	if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0)
		random = (uint32_t)clock_us();
	scoreboard_end(attempt->shown, end, SCOREBOARD_RETRIED);
	give_back(attempt, retry_delay(attempt->number, random), end->error.kind, true);
}

static void trip(struct attempt *attempt, const struct batch_job_end *end)
{
	struct dispatcher *dispatcher = attempt->dispatcher;
	const struct dispatcher_options *options = &dispatcher->options;
	struct fair_tenant *tenant = attempt->tenant;
	const char *provider = tenant->tenancy->provider ? tenant->tenancy->provider
							 : options->work.job.provider;

	if (tenant->stop != TENANT_STOP_KEY) {
		fair_queue_stop(&dispatcher->queue, tenant, TENANT_STOP_KEY, INT64_MAX);
		store_breaker_open(options->store, options->batch, text_of(tenant->name),
				   text_of(provider), text_of(end->error.text), NULL, NULL);
		scoreboard_explain(options->board, tenant->name, end->error.text);
		options->refused(options->owner, tenant->name, &end->error);
	}
	scoreboard_end(attempt->shown, end, SCOREBOARD_RETURNED);
	give_back(attempt, 0, end->error.kind, false);
}

/* It was not its own limit: with more money it may have an answer, or a better one than that which
 * was forced, and until then it waits. After others, for it may be one that wants more than they
 * do. */
static void run_short(struct attempt *attempt, const struct batch_job_end *end)
{
	lease_note_short(attempt->pays, end->limited_by, end->stop);
	scoreboard_end(attempt->shown, end, SCOREBOARD_RETURNED);
	give_back(attempt, SHORT_MS, RLMD_ERROR_NONE, false);
}

/* Nothing is wrong with it. One that is alone has all that there is, and the want may last. */
static void make_room(struct attempt *attempt, const struct batch_job_end *end)
{
	struct dispatcher *dispatcher = attempt->dispatcher;
	auto_free char *text = NULL;

	if (dispatcher->used <= 1) {
		retry(attempt, end);
		return;
	}
	text = concurrency_lower(&dispatcher->concurrency, dispatcher->used, &end->error);
	if (text)
		dispatcher->options.tell(dispatcher->options.owner, text);
	scoreboard_end(attempt->shown, end, SCOREBOARD_RETURNED);
	give_back(attempt, SHORT_MS, end->error.kind, false);
}

static void on_work(void *owner, const struct batch_job_end *end)
{
	struct attempt *attempt = owner;

	attempt->took = (struct lease_job){
		.cost = {end->cost, end->tokens},
		.paid = {end->paid_cost, end->paid_tokens},
	};
	if (attempt->lost || attempt->dispatcher->error.kind) {
		drop(attempt);
		return;
	}
	if (end->limited_by) {
		run_short(attempt, end);
		batch_job_free(take_pointer(&attempt->job));
		return;
	}
	switch (retry_of(end->error.kind)) {
	case RETRY_NEVER:
		finish(attempt, end, false);
		break;
	case RETRY_LATER:
		retry(attempt, end);
		break;
	case RETRY_WITH_FEWER:
		make_room(attempt, end);
		break;
	case RETRY_WITH_ANOTHER_KEY:
		trip(attempt, end);
		break;
	case RETRY_UNCOUNTED:
		scoreboard_end(attempt->shown, end, SCOREBOARD_RETURNED);
		give_back(attempt, attempt->dispatcher->draining ? 0 : SOON_MS, RLMD_ERROR_NONE,
			  false);
		break;
	}
	batch_job_free(take_pointer(&attempt->job));
}

/* --- its job ------------------------------------------------------------------------- */

static void on_journal(void *owner, const struct rlmd_error *err)
{
	struct attempt *attempt = owner;
	struct dispatcher *dispatcher = attempt->dispatcher;

	if (attempt->lost) {
		drop(attempt);
		return;
	}
	if (err || dispatcher->draining) {
		if (err && !dispatcher->error.kind) {
			dispatcher->error = *err;
			error_context(&dispatcher->error, "job '%.100s'",
				      attempt->shown->custom_id);
		}
		dispatcher->draining = true;
		give_back(attempt, 0, RLMD_ERROR_NONE, false);
		return;
	}
	attempt->job = batch_job_new(&dispatcher->options.work, attempt->tenant->tenancy,
				     attempt->line, job_journal_hooks(attempt->journal),
				     lease_account(attempt->pays), on_work, attempt);
	free((char *)attempt->line.bytes);
	attempt->line = (struct rlmd_text){0};
}

/* The end of its last attempt is unknown: rlmd or the machine died with it. Such a job must not
 * take down every process that begins it. */
static void give_up(struct attempt *attempt)
{
	struct batch_job_end end = {.error.kind = RLMD_ERROR_NONE};
	auto_free char *result = NULL;

	error_set(&end.error, RLMD_ERROR_WORKER,
		  "begun %" PRId64
		  " times, and the last time rlmd was ended with it (killed, out of memory, or the "
		  "machine stopped), with no other job at work: it is not begun again, as it may "
		  "be the cause; --rerun-failed tries it anew",
		  attempt->number - 1);
	result = batch_job_no_result(&end.error);
	end.result = text_of(result);
	finish(attempt, &end, true);
}

static void start(struct attempt *attempt)
{
	attempt->journal = job_journal_new(attempt->dispatcher->options.store, &attempt->claim,
					   attempt->pays);
	job_journal_read(attempt->journal, on_journal, attempt);
}

static void on_alone(void *owner, const struct store_result *result)
{
	struct attempt *attempt = owner;

	attempt->query = NULL;
	if (!result->fault) {
		start(attempt);
		return;
	}
	if (result->fault != STORE_REFUSED)
		fail(attempt->dispatcher, result);
	drop(attempt);
}

/* One that is held is begun, as nothing else is at work; or given back, where nothing is begun any
 * more. */
static void release(struct attempt *attempt)
{
	struct dispatcher *dispatcher = attempt->dispatcher;

	attempt->held = false;
	if (dispatcher->draining)
		give_back(attempt, 0, RLMD_ERROR_NONE, false);
	else
		attempt->query = store_alone(dispatcher->options.store, &attempt->claim, on_alone,
					     attempt);
}

/* --- claims ------------------------------------------------------------------------------ */

static struct attempt *find(struct dispatcher *dispatcher, int64_t job)
{
	struct attempt *attempt;

	TAILQ_FOREACH (attempt, &dispatcher->attempts, next)
		if (attempt->claim.job == job && !attempt->lost)
			return attempt;
	return NULL;
}

/* Its lease was over, and somebody else has the job: it is stopped, and nothing is written. */
static void lose(struct attempt *attempt)
{
	if (!attempt)
		return;
	attempt->lost = true;
	if (attempt->job)
		batch_job_cancel(attempt->job);
	if (attempt->held)
		drop(attempt);
}

/* A job that is claimed anew may be this very process's, which was held up. A suspect is held until
 * it is alone. */
static void begin(struct attempt *attempt, const struct store_job *job)
{
	struct dispatcher *dispatcher = attempt->dispatcher;

	lose(find(dispatcher, job->id));
	dispatcher->looked = dispatcher->dry = false;
	attempt->claim = (struct store_claim){job->id, job->token};
	attempt->number = job->attempts;
	attempt->shown = scoreboard_begin(dispatcher->options.board, job);
	if (attempt->number > dispatcher->options.max_attempts) {
		give_up(attempt);
		return;
	}
	attempt->line = text_from(xstrndup(job->line.bytes, job->line.size), job->line.size);
	attempt->suspect = attempt->held = job->suspect;
	if (attempt->held)
		proceed(dispatcher);
	else
		start(attempt);
}

static void on_claim(void *owner, const struct store_result *result)
{
	struct attempt *attempt = owner;

	attempt->query = NULL;
	if (!result->fault && result->count) {
		begin(attempt, &result->jobs[0]);
		return;
	}
	if (result->fault)
		fail(attempt->dispatcher, result);
	attempt->tenant->ready = false;
	attempt->dispatcher->dry = true;
	attempt->dispatcher->looked = false;
	drop(attempt);
}

static void claim(struct dispatcher *dispatcher, struct fair_tenant *tenant)
{
	const struct dispatcher_options *options = &dispatcher->options;
	const struct rlmd_text name = text_of(tenant->name);
	struct attempt *attempt = xcalloc(1, sizeof *attempt);

	attempt->dispatcher = dispatcher;
	attempt->tenant = tenant;
	attempt->pays = accounts_of(dispatcher->accounts, tenant->name);
	lease_use(attempt->pays);
	TAILQ_INSERT_TAIL(&dispatcher->attempts, attempt, next);
	dispatcher->used++;
	tenant->at_work++;
	concurrency_begin(&dispatcher->concurrency);
	attempt->query = store_claim(options->store, options->batch, &name, text_of(options->node),
				     1, options->lease_ms, on_claim, attempt);
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
		struct attempt *attempt = find(dispatcher, dispatcher->renewed[i].job);

		if (result->lost[i] && attempt && !attempt->query &&
		    attempt->claim.token == dispatcher->renewed[i].token)
			lose(attempt);
	}
}

static void on_renew(evutil_socket_t fd, short what, void *owner)
{
	struct dispatcher *dispatcher = owner;
	struct attempt *attempt;
	size_t count = 0;

	(void)fd;
	(void)what;
	if (dispatcher->renewal || dispatcher->error.kind)
		return;
	dispatcher->renewed = xreallocarray(dispatcher->renewed, (size_t)dispatcher->used + 1,
					    sizeof *dispatcher->renewed);
	TAILQ_FOREACH (attempt, &dispatcher->attempts, next)
		if (attempt->claim.job && !attempt->lost)
			dispatcher->renewed[count++] = attempt->claim;
	if (count)
		dispatcher->renewal = store_renew(dispatcher->options.store, dispatcher->renewed,
						  count, dispatcher->options.lease_ms, on_renewed,
						  dispatcher);
}

/* --- what is next ------------------------------------------------------------------------ */

/* Sets up the tenant's own key, models and money; a tenant that lacks one has its jobs held back.
 */
static void settle(struct dispatcher *dispatcher, struct fair_tenant *tenant)
{
	const struct dispatcher_options *options = &dispatcher->options;

	if (tenant->tenancy)
		return;
	tenant->tenancy = tenancies_get(options->tenancies, text_of(tenant->name));
	tenant->weight = tenancies_weight(tenant->tenancy);
	if (!tenant->tenancy->unable.kind)
		return;
	if (!tenant->tenancy->settings &&
	    !tenant->tenancy->stranger) { /* what the command itself has is no better for others */
		dispatcher->error = tenant->tenancy->unable;
		dispatcher->draining = true;
		return;
	}
	fair_queue_stop(&dispatcher->queue, tenant, TENANT_STOP_UNABLE, INT64_MAX);
	scoreboard_explain(options->board, tenant->name, tenant->tenancy->unable.text);
	options->refused(options->owner, tenant->name, &tenant->tenancy->unable);
}

/* The jobs that are over and their costs, summed up: one with another they cost `ret`. */
static bool mean_cost(const struct store_count *counts, size_t count, struct rlmd_amount *ret)
{
	struct rlmd_amount sum = {0};
	int64_t over = 0;

	for (size_t i = 0; i < count; i++) {
		sum = amount_add(sum, (struct rlmd_amount){counts[i].cost, counts[i].tokens});
		over += counts[i].jobs[STORE_JOB_SUCCEEDED] + counts[i].jobs[STORE_JOB_FAILED];
	}
	if (over)
		*ret = (struct rlmd_amount){sum.cost / over, sum.tokens / over};
	return over;
}

static void expect(struct dispatcher *dispatcher, const struct store_result *result)
{
	struct rlmd_amount cost;

	if (mean_cost(result->counts, result->count, &cost))
		accounts_expect(dispatcher->accounts, NULL, cost);
	for (size_t i = 0; i < result->count; i++) {
		struct fair_tenant *tenant = fair_queue_get(&dispatcher->queue,
							    result->counts[i].tenant);

		if (mean_cost(&result->counts[i], 1, &cost))
			accounts_expect(dispatcher->accounts, tenant->name, cost);
	}
}

static void note_count(struct dispatcher *dispatcher, const struct store_count *count)
{
	struct fair_tenant *tenant = fair_queue_get(&dispatcher->queue, count->tenant);

	if (count->due_ms != INT64_MAX)
		settle(dispatcher, tenant);
	if (count->due_ms == INT64_MAX || fair_queue_is_over(tenant))
		return;
	dispatcher->left = true;
	tenant->due_ms = clock_ms() + (count->due_ms > 0 ? count->due_ms
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
	dispatcher->look_took_ms = clock_ms() - dispatcher->looked_ms;
	scoreboard_count(dispatcher->options.board, result->counts, result->count);
	dispatcher->left = false;
	expect(dispatcher, result);
	for (size_t i = 0; i < result->count; i++)
		note_count(dispatcher, &result->counts[i]);
	dispatcher->looked = true;
	if (!dispatcher->left)
		dispatcher->draining = true;
	proceed(dispatcher);
}

static void end(void *owner)
{
	struct dispatcher *dispatcher = owner;

	dispatcher->over = true;
	event_del(dispatcher->renew);
	timer_stop(dispatcher->wake);
	timer_stop(dispatcher->look);
	dispatcher->options.end(dispatcher->options.owner,
				dispatcher->error.kind ? &dispatcher->error : NULL);
}

/* There is money for a job of it; else it has no turn for a while, or any more. */
static bool can_pay(struct dispatcher *dispatcher, struct fair_tenant *tenant)
{
	struct dispatcher_options *options = &dispatcher->options;
	struct lease_lack lack = {.again_ms = clock_ms() + options->lease_ms};
	auto_free char *why = NULL;

	if (lease_look(accounts_of(dispatcher->accounts, tenant->name), &lack) == LEASE_READY)
		return true;
	why = lack.why;
	fair_queue_stop(&dispatcher->queue, tenant, TENANT_STOP_MONEY, lack.again_ms);
	if (!why)
		return false;
	dispatcher->looked = false;
	scoreboard_explain(options->board, tenant->name, why);
	if (!lack.reported)
		options->capped(options->owner, why);
	return false;
}

static void tell_once(struct dispatcher *dispatcher, bool *reported, const char *text)
{
	if (!*reported)
		dispatcher->options.tell(dispatcher->options.owner, text);
	*reported = true;
}

/* Whether there is memory for one more job; the first one always has it. */
static bool has_room(struct dispatcher *dispatcher)
{
	if (dispatcher->used >= dispatcher->concurrency.limit)
		return false;
	if (!dispatcher->used || concurrency_admits(&dispatcher->concurrency, clock_ms()))
		return true;
	if (fair_queue_any(&dispatcher->queue))
		tell_once(dispatcher, &dispatcher->memory_reported,
			  "fewer jobs are begun than -j allows, as there is too little memory "
			  "beside what --reserve-memory leaves");
	return false;
}

/* Its provider may want no more work for a while: jobs wait in the store, and not each in a worker
 * of its own. */
static bool is_busy(struct dispatcher *dispatcher, struct fair_tenant *tenant)
{
	const struct batch_job_setting *work = &dispatcher->options.work;
	const char *own = tenant->tenancy ? tenant->tenancy->provider : NULL;
	const char *provider = own ? own : work->job.provider;
	int64_t wait_ms = rlmd_engine_provider_wait(work->engine, provider);
	auto_free char *text = NULL;

	if (!wait_ms)
		return false;
	fair_queue_stop(&dispatcher->queue, tenant, TENANT_STOP_BUSY, clock_ms() + wait_ms);
	text = xasprintf("%s limits the rate, or is busy: no job of it is begun until it may be "
			 "asked again",
			 provider);
	tell_once(dispatcher, &dispatcher->busy_reported, text);
	return true;
}

/* When there may be more to begin: a turn comes by itself, or memory is given back by others. */
static int64_t next_ms(struct dispatcher *dispatcher, bool room)
{
	int64_t due_ms = fair_queue_due(&dispatcher->queue);
	int64_t again_ms = clock_ms() + ROOM_MS;

	return room || dispatcher->used >= dispatcher->concurrency.limit || due_ms < again_ms
		       ? due_ms
		       : again_ms;
}

/* A job that was at work when its process died may be the cause. It is begun when nothing else is
 * at work, and nothing beside it: others are not to die with it. Whether there is such a job. */
static bool isolate(struct dispatcher *dispatcher)
{
	struct attempt *attempt, *next = NULL;
	bool found = false, busy = false;

	TAILQ_FOREACH (attempt, &dispatcher->attempts, next) {
		found |= attempt->suspect;
		busy |= !attempt->held;
		if (attempt->held && !next)
			next = attempt;
	}
	if (next && !busy)
		release(next);
	return found;
}

static void release_all(struct dispatcher *dispatcher)
{
	struct attempt *attempt;

	TAILQ_FOREACH (attempt, &dispatcher->attempts, next)
		if (attempt->held)
			release(attempt);
}

static void fill(struct dispatcher *dispatcher)
{
	struct fair_tenant *tenant;
	int64_t due_ms;
	bool room;

	if (isolate(dispatcher))
		return;
	fair_queue_wake_due(&dispatcher->queue, clock_ms());
	while ((room = has_room(dispatcher)) &&
	       (tenant = fair_queue_next(&dispatcher->queue,
					 dispatcher->concurrency.limit - dispatcher->used)))
		if (!is_busy(dispatcher, tenant) && can_pay(dispatcher, tenant))
			claim(dispatcher, tenant);
	due_ms = next_ms(dispatcher, room);
	if (due_ms == INT64_MAX)
		return;
	timer_start(dispatcher->wake, due_ms - clock_ms());
}

static void look(struct dispatcher *dispatcher)
{
	dispatcher->looked_ms = clock_ms();
	dispatcher->count = store_counts(dispatcher->options.store, dispatcher->options.batch,
					 on_count, dispatcher);
}

/* Gives back the money that is left, then ends. */
static void begin_end(struct dispatcher *dispatcher)
{
	if (!dispatcher->closing)
		accounts_close(dispatcher->accounts);
	dispatcher->closing = true;
}

static void on_proceed(void *owner)
{
	struct dispatcher *dispatcher = owner;

	if (!dispatcher->draining)
		fill(dispatcher);
	if (dispatcher->draining)
		release_all(dispatcher);
	if (dispatcher->draining && !dispatcher->used)
		begin_end(dispatcher);
	/* Only the store knows what is left to do: it is asked once after each change. */
	else if (!dispatcher->draining && dispatcher->used < dispatcher->concurrency.limit &&
		 !dispatcher->count && !dispatcher->looked)
		look(dispatcher);
}

static void on_look(void *owner)
{
	struct dispatcher *dispatcher = owner;
	int64_t every_ms = int64_max(RECOUNT_MS, RECOUNT_TIMES * dispatcher->look_took_ms);

	dispatcher->looked = false;
	/* Those who watch see the work of others, too. */
	if (!dispatcher->draining && !dispatcher->count &&
	    clock_ms() - dispatcher->looked_ms >= every_ms)
		look(dispatcher);
	on_proceed(dispatcher);
}

/* --- money ------------------------------------------------------------------------------- */

static struct accounts *accounts_for(struct dispatcher *dispatcher)
{
	const struct dispatcher_options *options = &dispatcher->options;
	const struct accounts_options accounts = {
		.base = options->work.base,
		.store = options->store,
		.batch = options->batch,
		.node = options->node,
		.job_lease_ms = options->lease_ms,
		.limit = options->limit,
		.job = &options->work.limits,
		.tenants = options->tenants,
		.keeps = options->keeps_limits,
		.changed = note_money,
		.failed = fail,
		.closed = end,
		.owner = dispatcher,
	};

	return accounts_new(&accounts);
}

/* --- its life ------------------------------------------------------------------------------ */

struct dispatcher *dispatcher_new(const struct dispatcher_options *options)
{
	struct dispatcher *dispatcher = xcalloc(1, sizeof *dispatcher);
	struct event_base *base = options->work.base;
	const struct timeval often = clock_timeval(options->lease_ms / 3);
	auto_free char *limits = NULL;

	dispatcher->options = *options;
	TAILQ_INIT(&dispatcher->attempts);
	dispatcher->posted = timer_new(base, on_proceed, dispatcher);
	dispatcher->wake = timer_new(base, on_proceed, dispatcher);
	dispatcher->look = timer_new(base, on_look, dispatcher);
	dispatcher->renew = loop_event(base, -1, EV_PERSIST, on_renew, dispatcher);
	limits = concurrency_open(&dispatcher->concurrency, options->reserve, options->max_jobs);
	if (limits)
		options->tell(options->owner, limits);
	dispatcher->accounts = accounts_for(dispatcher);
	loop_add(dispatcher->renew, &often);
	proceed(dispatcher);
	return dispatcher;
}

void dispatcher_free(struct dispatcher *dispatcher)
{
	struct attempt *attempt;

	if (!dispatcher)
		return;
	dispatcher->over = true;
	while ((attempt = TAILQ_FIRST(&dispatcher->attempts)))
		drop(attempt);
	store_forget(dispatcher->count);
	store_forget(dispatcher->renewal);
	accounts_free(dispatcher->accounts);
	timer_free(dispatcher->posted);
	timer_free(dispatcher->wake);
	timer_free(dispatcher->look);
	event_free(dispatcher->renew);
	fair_queue_done(&dispatcher->queue);
	free(dispatcher->renewed);
	free(dispatcher);
}

void dispatcher_show(const struct dispatcher *dispatcher)
{
	const struct attempt *attempt;

	TAILQ_FOREACH (attempt, &dispatcher->attempts, next)
		if (attempt->job && attempt->shown)
			batch_job_status(attempt->job, &attempt->shown->status);
	scoreboard_look(dispatcher->options.board, &dispatcher->queue);
	dispatcher->options.board->draining = dispatcher->draining;
}

void dispatcher_look(struct dispatcher *dispatcher)
{
	int64_t every_ms = int64_max(LOOK_MS, LOOK_TIMES * dispatcher->look_took_ms);
	int64_t wait_ms = dispatcher->looked_ms + every_ms - clock_ms();

	if (!dispatcher->over && !timer_waits(dispatcher->look))
		timer_start(dispatcher->look, wait_ms > 0 ? wait_ms : 0);
}

void dispatcher_drain(struct dispatcher *dispatcher)
{
	dispatcher->draining = true;
	proceed(dispatcher);
}

void dispatcher_stop(struct dispatcher *dispatcher)
{
	cancel_all(dispatcher);
	dispatcher_drain(dispatcher);
}
