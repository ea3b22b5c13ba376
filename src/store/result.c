#include "store/result.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "store/checksum.h"
#include "store/query.h"

enum { NAME_TOLD = 200 }; /* bytes of a custom_id */

/* Turns a script's rows into a result; NULL: the script tells nothing but that it is done. */
typedef void result_fn(struct query *, struct store_result *);

static void stale(struct query *query)
{
	query_fail(query, STORE_REFUSED, "%s", query_fault_meaning(STORE_REFUSED));
}

/* Of a row that is not as it was written. */
static void damaged(struct query *query, const char *what, struct rlmd_text name)
{
	query_fail(
		query, STORE_CORRUPT,
		"the store is damaged: %s%s%.*s%s not as it was written; put a copy of the store "
		"in its place, or begin with another one",
		what, name.size ? " '" : "", (int)(name.size < NAME_TOLD ? name.size : NAME_TOLD),
		name.size ? name.bytes : "", name.size ? "' is" : " is");
}

/* The one row says that the writer was let in. */
static void read_done(struct query *query, struct store_result *result)
{
	(void)result;
	if (!query->rows)
		stale(query);
}

static struct store_batch *batches_in(const struct query *query)
{
	struct store_batch *batches = xcalloc(query->rows + 1, sizeof *batches);

	for (size_t i = 0; i < query->rows; i++)
		batches[i] = (struct store_batch){
			.id = query_integer(query, i, 0),
			.name = query_text(query, i, 1),
			.digest = query_text(query, i, 2),
			.ready = query_text(query, i, 2).size,
			.jobs = query_integer(query, i, 3),
		};
	return batches;
}

static void read_batches(struct query *query, struct store_result *result)
{
	result->count = query->rows;
	result->batches = batches_in(query);
}

static void read_found(struct query *query, struct store_result *result)
{
	struct store_batch *batches = batches_in(query);

	for (size_t i = 0; i < query->rows; i++)
		batches[i].loader = query_text(query, i, 4);
	result->count = query->rows;
	result->batches = batches;
}

static void read_load(struct query *query, struct store_result *result)
{
	read_batches(query, result);
	result->load = (struct store_load){
		.batch = result->batches[0].id,
		.token = query_integer(query, 0, 4),
		.after = query_integer(query, 0, 5),
	};
	if (result->batches[0].ready && !query->params[1].integer)
		result->load.token = 0;
}

/* A line is new where its own number stands with its name. */
static void read_added(struct query *query, struct store_result *result)
{
	size_t width = query->width / query->sets;
	enum store_line_state *lines = xcalloc(query->sets, sizeof *lines);

	result->lines = lines;
	result->count = query->sets;
	if (query->rows < query->sets)
		stale(query);
	for (size_t i = 0; i < query->rows; i++) {
		const struct value *set = query->params + query->row_sets[i] * width;
		struct rlmd_text digest = query_text(query, i, 1);

		if (query_integer(query, i, 0) == set[2].integer)
			lines[query->row_sets[i]] = STORE_LINE_NEW;
		else if (digest.size == set[5].text.size && text_starts(digest, set[5].text.bytes))
			lines[query->row_sets[i]] = STORE_LINE_SAME;
		else
			lines[query->row_sets[i]] = STORE_LINE_DIFFERS;
	}
}

static void read_compared(struct query *query, struct store_result *result)
{
	enum store_line_state *lines = xcalloc(query->sets, sizeof *lines);

	result->lines = lines;
	result->count = query->sets;
	for (size_t i = 0; i < query->rows; i++)
		lines[query->row_sets[i]] = query_integer(query, i, 0) ? STORE_LINE_SAME
								       : STORE_LINE_DIFFERS;
}

static int by_number(const void *a, const void *b)
{
	const struct store_job *one = a, *other = b;

	return (one->number > other->number) - (one->number < other->number);
}

/* RETURNING has no order. */
static void read_claimed(struct query *query, struct store_result *result)
{
	struct store_job *jobs = xcalloc(query->rows + 1, sizeof *jobs);

	for (size_t i = 0; i < query->rows; i++)
		jobs[i] = (struct store_job){
			.id = query_integer(query, i, 0),
			.token = query_integer(query, i, 1),
			.number = query_integer(query, i, 2),
			.attempts = query_integer(query, i, 3),
			.custom_id = query_text(query, i, 4),
			.tenant = query_text(query, i, 5),
			.line = query_text(query, i, 6),
			.suspect = query_integer(query, i, 8) != 0,
			.state = STORE_JOB_RUNNING,
		};
	for (size_t i = 0; i < query->rows; i++)
		if (!checksum_is(query_integer(query, i, 7), checksum_of_line(&jobs[i])))
			damaged(query, "job", jobs[i].custom_id);
	qsort(jobs, query->rows, sizeof *jobs, by_number);
	result->count = query->rows;
	result->jobs = jobs;
}

static bool is_whole(const struct query *query, size_t row, const struct store_job *job)
{
	const struct store_outcome outcome = {
		.result = job->result,
		.error = job->error,
		.cost = job->cost,
		.tokens = job->tokens,
		.trace = job->trace,
	};

	return (job->state == STORE_JOB_SUCCEEDED || job->state == STORE_JOB_FAILED) &&
	       checksum_is(query_integer(query, row, 13), checksum_of_name(job)) &&
	       checksum_is(query_integer(query, row, 14),
			   checksum_of_end(job->id, job->state, &outcome));
}

static struct store_job job_in(const struct query *query, size_t row)
{
	return (struct store_job){
		.id = query_integer(query, row, 0),
		.number = query_integer(query, row, 1),
		.attempts = query_integer(query, row, 2),
		.custom_id = query_text(query, row, 3),
		.tenant = query_text(query, row, 4),
		.digest = query_text(query, row, 5),
		.state = (enum store_state)query_integer(query, row, 6),
		.rank = query_integer(query, row, 7),
		.result = query_text(query, row, 8),
		.error = query_text(query, row, 9),
		.cost = query_integer(query, row, 10),
		.tokens = query_integer(query, row, 11),
		.trace = query_text(query, row, 12),
		.token = query_integer(query, row, 15),
	};
}

static void read_results(struct query *query, struct store_result *result)
{
	struct store_job *jobs = xcalloc(query->rows + 1, sizeof *jobs);

	for (size_t i = 0; i < query->rows; i++) {
		jobs[i] = job_in(query, i);
		if (!is_whole(query, i, &jobs[i]))
			damaged(query, "the result of job", jobs[i].custom_id);
	}
	result->count = query->rows;
	result->jobs = jobs;
}

static void read_jobs(struct query *query, struct store_result *result)
{
	struct store_job *jobs = xcalloc(query->sets, sizeof *jobs);

	for (size_t i = 0; i < query->rows; i++) {
		struct store_job *job = &jobs[query->row_sets[i]];

		*job = job_in(query, i);
		if (job->state > STORE_JOB_RUNNING && !is_whole(query, i, job))
			damaged(query, "the result of job", job->custom_id);
	}
	result->count = query->sets;
	result->jobs = jobs;
}

static void read_lost(struct query *query, struct store_result *result)
{
	bool *lost = xcalloc(query->sets, sizeof *lost);

	for (size_t i = 0; i < query->sets; i++)
		lost[i] = true;
	for (size_t i = 0; i < query->rows; i++)
		lost[query->row_sets[i]] = false;
	result->count = query->sets;
	result->lost = lost;
}

/* Whether the exchange was kept, and which of its leases are over. */
static void read_kept(struct query *query, struct store_result *result)
{
	bool *lost = xcalloc(query->sets, sizeof *lost);

	read_done(query, result);
	for (size_t i = 0; i < query->rows; i++)
		lost[query->row_sets[i]] = !query_integer(query, i, 0);
	result->count = query->sets;
	result->lost = lost;
}

static void read_exchanges(struct query *query, struct store_result *result)
{
	struct store_exchange *exchanges = xcalloc(query->rows + 1, sizeof *exchanges);

	for (size_t i = 0; i < query->rows; i++)
		exchanges[i] = (struct store_exchange){
			.id = query_integer(query, i, 0),
			.key = query_text(query, i, 1),
			.number = query_integer(query, i, 2),
			.bytes = query_text(query, i, 3),
			.cost = query_integer(query, i, 4),
			.tokens = query_integer(query, i, 5),
		};
	for (size_t i = 0; i < query->rows; i++)
		if (!checksum_is(query_integer(query, i, 6),
				 checksum_of_exchange(query->params[0].integer, &exchanges[i])))
			damaged(query, "an answer that was kept of this job", text_of(""));
	result->count = query->rows;
	result->exchanges = exchanges;
}

static void read_rerun(struct query *query, struct store_result *result)
{
	result->count = query->rows;
}

static void read_account(struct query *query, struct store_result *result)
{
	result->account = (struct store_account){
		.id = query_integer(query, 0, 0),
		.spent_cost = query_integer(query, 0, 1),
		.spent_tokens = query_integer(query, 0, 2),
		.held_cost = query_integer(query, 0, 3),
		.held_tokens = query_integer(query, 0, 4),
		.ends_ms = query_integer(query, 0, 5),
		.limit_cost = query_integer(query, 0, 6),
		.limit_tokens = query_integer(query, 0, 7),
	};
}

static void read_lease(struct query *query, struct store_result *result)
{
	if (query->rows)
		result->lease = (struct store_lease){
			.id = query_integer(query, 0, 0),
			.cost = query_integer(query, 0, 1),
			.tokens = query_integer(query, 0, 2),
		};
}

static void read_hold(struct query *query, struct store_result *result)
{
	read_lease(query, result);
	if (!query->rows)
		return;
	result->lease.open_cost = query_integer(query, 0, 3);
	result->lease.open_tokens = query_integer(query, 0, 4);
	result->lease.free_cost = query_integer(query, 0, 5);
	result->lease.free_tokens = query_integer(query, 0, 6);
	result->lease.others_ms = query_integer(query, 0, 7);
}

static void read_breakers(struct query *query, struct store_result *result)
{
	struct store_breaker *breakers = xcalloc(query->rows + 1, sizeof *breakers);

	for (size_t i = 0; i < query->rows; i++)
		breakers[i] = (struct store_breaker){
			.tenant = query_text(query, i, 0),
			.provider = query_text(query, i, 1),
			.why = query_text(query, i, 2),
			.since_ms = query_integer(query, i, 3),
		};
	result->count = query->rows;
	result->breakers = breakers;
}

static void read_nodes(struct query *query, struct store_result *result)
{
	struct store_node *nodes = xcalloc(query->rows + 1, sizeof *nodes);

	for (size_t i = 0; i < query->rows; i++)
		nodes[i] = (struct store_node){
			.node = query_text(query, i, 0),
			.jobs = query_integer(query, i, 1),
			.left_ms = query_integer(query, i, 2),
		};
	result->count = query->rows;
	result->nodes = nodes;
}

/* A row for each tenant and state, those of a tenant together. */
static void read_counts(struct query *query, struct store_result *result)
{
	struct store_count *counts = xcalloc(query->rows + 1, sizeof *counts), *count = NULL;
	int64_t jobs = 0;

	for (size_t i = 0; i < query->rows; i++) {
		struct rlmd_text tenant = query_text(query, i, 0);
		int64_t state = query_integer(query, i, 1), due = query_integer(query, i, 5);

		jobs += query_integer(query, i, 2);
		if (query_text(query, i, 6).size || state < 0 || state >= STORE_JOB_STATES) {
			damaged(query, "job", query_text(query, i, 6));
			continue;
		}
		if (!count || tenant.size != count->tenant.size ||
		    !text_starts(tenant, count->tenant.bytes)) {
			count = counts + result->count++;
			*count = (struct store_count){.tenant = tenant, .due_ms = INT64_MAX};
		}
		count->jobs[state] = query_integer(query, i, 2);
		count->degraded += query_integer(query, i, 8);
		count->cost += query_integer(query, i, 3);
		count->tokens += query_integer(query, i, 4);
		if (state <= STORE_JOB_RUNNING && due < count->due_ms)
			count->due_ms = due;
	}
	if (query->rows && !query->fault && query_integer(query, 0, 7) &&
	    query_integer(query, 0, 7) != jobs)
		damaged(query, "the number of the batch's jobs", text_of(""));
	result->counts = counts;
}

static result_fn *const readers[SCRIPTS] = {
	[SCRIPT_LOAD_BEGIN] = read_load,
	[SCRIPT_LOAD_ADD] = read_added,
	[SCRIPT_LOAD_END] = read_done,
	[SCRIPT_COMPARE] = read_compared,
	[SCRIPT_FIND] = read_found,
	[SCRIPT_BATCHES] = read_batches,
	[SCRIPT_UNFINISHED] = read_batches,
	[SCRIPT_CLAIM] = read_claimed,
	[SCRIPT_CLAIM_OF] = read_claimed,
	[SCRIPT_ALONE] = read_done,
	[SCRIPT_RENEW] = read_lost,
	[SCRIPT_JOURNAL_ADD] = read_kept,
	[SCRIPT_JOURNAL_READ] = read_exchanges,
	[SCRIPT_FINISH] = read_done,
	[SCRIPT_POSTPONE] = read_done,
	[SCRIPT_RERUN] = read_rerun,
	[SCRIPT_RERUN_OF] = read_rerun,
	[SCRIPT_RERUN_DEGRADED] = read_rerun,
	[SCRIPT_ACCOUNT] = read_account,
	[SCRIPT_LEASE_TAKE] = read_lease,
	[SCRIPT_LEASE_HOLD] = read_hold,
	[SCRIPT_BREAKERS] = read_breakers,
	[SCRIPT_COUNTS] = read_counts,
	[SCRIPT_JOBS] = read_jobs,
	[SCRIPT_NODES] = read_nodes,
	[SCRIPT_RESULTS] = read_results,
	[SCRIPT_RESULTS_SORTED] = read_results,
};

void result_tell(struct query *query)
{
	struct store_result result = {0};

	if (!query->fault && readers[query->script])
		readers[query->script](query, &result);
	result.fault = query->fault;
	if (query->fault)
		result.error = query->error;
	query->fn(query->owner, &result);

	free((void *)result.batches);
	free((void *)result.lines);
	free((void *)result.jobs);
	free((void *)result.exchanges);
	free((void *)result.counts);
	free((void *)result.breakers);
	free((void *)result.nodes);
	free((void *)result.lost);
}
