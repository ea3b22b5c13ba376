#include "batch/scoreboard.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/money.h"
#include "base/text.h"
#include "batch/batch_job.h"

enum { ENOUGH = 3 }; /* ends that tell a rate, at least */

const int64_t scoreboard_bounds[SCOREBOARD_BUCKETS] = {
	1000, 2500, 5000, 10000, 30000, 60000, 120000, 300000, 600000, 1800000, 3600000};

const char *scoreboard_outcome_name(enum scoreboard_outcome outcome)
{
	static const char *const names[] = {"succeeded", "failed", "retried", "returned"};

	return names[outcome];
}

const char *scoreboard_stop_name(enum tenant_stop stop)
{
	switch (stop) {
	case TENANT_STOP_NONE:
		break;
	case TENANT_STOP_KEY:
		return "key";
	case TENANT_STOP_MONEY:
		return "money";
	case TENANT_STOP_HALTED:
		return "halted";
	case TENANT_STOP_UNABLE:
		return "unable";
	case TENANT_STOP_BUSY:
		return "busy";
	}
	return "";
}

struct scoreboard *scoreboard_new(void)
{
	struct scoreboard *board = xcalloc(1, sizeof *board);

	TAILQ_INIT(&board->jobs);
	return board;
}

static void take_off(struct scoreboard_job *job)
{
	TAILQ_REMOVE(&job->board->jobs, job, next);
	free(job->custom_id);
	free(job);
}

void scoreboard_free(struct scoreboard *board)
{
	struct scoreboard_job *job;

	if (!board)
		return;
	while ((job = TAILQ_FIRST(&board->jobs)))
		take_off(job);
	for (size_t i = 0; i < board->count; i++) {
		free(board->tenants[i]->name);
		free(board->tenants[i]->why);
		free(board->tenants[i]);
	}
	free(board->tenants);
	free(board);
}

static struct scoreboard_tenant *tenant_of(struct scoreboard *board, struct rlmd_text name)
{
	struct scoreboard_tenant *tenant;

	for (size_t i = 0; i < board->count; i++)
		if (text_equal(name, board->tenants[i]->name))
			return board->tenants[i];
	tenant = xcalloc(1, sizeof *tenant);
	tenant->name = text_copy(name);
	board->tenants = xreallocarray(board->tenants, board->count + 1, sizeof tenant);
	board->tenants[board->count++] = tenant;
	return tenant;
}

/* --- how fast ----------------------------------------------------------------------- */

static int64_t ended(const struct scoreboard *board)
{
	int64_t all = 0;

	for (size_t i = 0; i < board->count; i++)
		all += board->tenants[i]->jobs[STORE_JOB_SUCCEEDED] +
		       board->tenants[i]->jobs[STORE_JOB_FAILED];
	return all;
}

/* Each end, wherever the job was: others may work on the batch, too. */
static void sample(struct scoreboard *board)
{
	int64_t last = (board->samples - 1) % SCOREBOARD_RECENT, now = ended(board);

	if (board->samples && board->recent[last].ended == now)
		return;
	last = board->samples++ % SCOREBOARD_RECENT;
	board->recent[last].at_ms = clock_ms();
	board->recent[last].ended = now;
}

/* How many jobs are left of the tenants whose jobs may be begun. */
static int64_t left(const struct scoreboard *board)
{
	int64_t all = 0;

	for (size_t i = 0; i < board->count; i++) {
		const struct scoreboard_tenant *tenant = board->tenants[i];

		all += tenant->stop == TENANT_STOP_NONE || tenant->stop == TENANT_STOP_BUSY
			       ? tenant->jobs[STORE_JOB_PENDING] + tenant->jobs[STORE_JOB_RUNNING]
			       : tenant->at_work;
	}
	return all;
}

/* Jobs that began together end together: until as many have ended as are at work there is no rate.
 */
static int64_t left_ms(const struct scoreboard *board, int64_t at_work, int64_t now_ms)
{
	int64_t oldest = board->samples > SCOREBOARD_RECENT ? board->samples % SCOREBOARD_RECENT
							    : 0;
	int64_t done, took;

	if (!board->samples || board->draining)
		return -1;
	done = ended(board) - board->recent[oldest].ended;
	took = now_ms - board->recent[oldest].at_ms;
	if (done < ENOUGH || done < at_work)
		return -1;
	return (int64_t)((double)left(board) * (double)took / (double)done);
}

/* --- what happens ---------------------------------------------------------------------- */

void scoreboard_next(struct scoreboard *board)
{
	for (size_t i = 0; i < board->count; i++) {
		struct scoreboard_tenant *tenant = board->tenants[i];

		memset(tenant->jobs, 0, sizeof tenant->jobs);
		tenant->cost = tenant->tokens = tenant->degraded = 0;
		tenant->stop = TENANT_STOP_NONE;
	}
	board->samples = 0;
}

void scoreboard_count(struct scoreboard *board, const struct store_count *counts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct scoreboard_tenant *tenant = tenant_of(board, counts[i].tenant);

		for (int state = 0; state < STORE_JOB_STATES; state++)
			tenant->jobs[state] = counts[i].jobs[state];
		tenant->degraded = counts[i].degraded;
		tenant->cost = counts[i].cost;
		tenant->tokens = counts[i].tokens;
	}
	sample(board);
}

void scoreboard_look(struct scoreboard *board, const struct fair_queue *queue)
{
	for (size_t i = 0; i < queue->count; i++)
		tenant_of(board, text_of(queue->tenants[i]->name))->stop = queue->tenants[i]->stop;
}

void scoreboard_explain(struct scoreboard *board, const char *name, const char *why)
{
	struct scoreboard_tenant *tenant = tenant_of(board, text_of(name));

	free(tenant->why);
	tenant->why = xstrdup(why);
}

/* One that another process had, whose lease is over, was running all the time: nobody says so. */
struct scoreboard_job *scoreboard_begin(struct scoreboard *board, const struct store_job *claimed)
{
	struct scoreboard_tenant *tenant = tenant_of(board, claimed->tenant);
	struct scoreboard_job *job = xcalloc(1, sizeof *job);

	job->board = board;
	job->tenant = tenant;
	job->custom_id = text_copy(claimed->custom_id);
	job->attempt = claimed->attempts;
	job->began_ms = clock_ms();
	job->status.size = sizeof job->status;
	job->outcome = SCOREBOARD_RETURNED;
	TAILQ_INSERT_TAIL(&board->jobs, job, next);
	tenant->at_work++;
	if (tenant->jobs[STORE_JOB_PENDING]) {
		tenant->jobs[STORE_JOB_PENDING]--;
		tenant->jobs[STORE_JOB_RUNNING]++;
	}
	return job;
}

static void note_duration(struct scoreboard *board, int64_t ms)
{
	size_t bucket = 0;

	while (bucket < SCOREBOARD_BUCKETS && ms > scoreboard_bounds[bucket])
		bucket++;
	board->took[bucket]++;
	board->took_ms += ms;
}

void scoreboard_end(struct scoreboard_job *job, const struct batch_job_end *end,
		    enum scoreboard_outcome outcome)
{
	struct scoreboard_tenant *tenant = job->tenant;

	job->status = (struct rlmd_job_status){.size = sizeof job->status};
	job->outcome = outcome;
	job->degraded = end->degraded;
	job->cost = end->cost;
	job->tokens = end->tokens;
	tenant->paid_cost = money_add(tenant->paid_cost, end->paid_cost);
	tenant->paid_tokens += end->paid_tokens;
	tenant->attempts[outcome]++;
	if (end->error.kind)
		tenant->errors[end->error.kind]++;
	if (outcome != SCOREBOARD_RETURNED)
		note_duration(job->board, clock_ms() - job->began_ms);
}

static enum store_state state_after(const struct scoreboard_job *job, bool written)
{
	if (written && job->outcome == SCOREBOARD_SUCCEEDED)
		return STORE_JOB_SUCCEEDED;
	if (written && job->outcome == SCOREBOARD_FAILED)
		return STORE_JOB_FAILED;
	return STORE_JOB_PENDING;
}

void scoreboard_leave(struct scoreboard_job *job, bool written)
{
	enum store_state state;

	if (!job)
		return;
	state = state_after(job, written);
	job->tenant->at_work--;
	if (job->tenant->jobs[STORE_JOB_RUNNING])
		job->tenant->jobs[STORE_JOB_RUNNING]--;
	job->tenant->jobs[state]++;
	job->tenant->degraded += state == STORE_JOB_SUCCEEDED && job->degraded;
	if (state != STORE_JOB_PENDING) {
		job->tenant->cost = money_add(job->tenant->cost, job->cost);
		job->tenant->tokens += job->tokens;
		sample(job->board);
	}
	take_off(job);
}

/* --- for whoever looks ------------------------------------------------------------------- */

struct scoreboard_sum scoreboard_sum(const struct scoreboard *board, int64_t now_ms)
{
	struct scoreboard_sum sum = {0};
	const struct scoreboard_job *job;

	for (size_t i = 0; i < board->count; i++) {
		const struct scoreboard_tenant *tenant = board->tenants[i];

		for (int state = 0; state < STORE_JOB_STATES; state++)
			sum.jobs[state] += tenant->jobs[state];
		sum.at_work += tenant->at_work;
		sum.cost = money_add(sum.cost, tenant->cost);
		sum.tokens += tenant->tokens;
	}
	TAILQ_FOREACH (job, &board->jobs, next) {
		sum.calls_in_flight += job->status.calls_in_flight;
		sum.cost = money_add(sum.cost, job->status.cost);
		sum.tokens += job->status.tokens;
	}
	sum.left_ms = left_ms(board, sum.at_work, now_ms);
	return sum;
}
