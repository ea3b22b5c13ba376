#include "batch/runner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "base/timer.h"
#include "batch/batch_queue.h"
#include "batch/batch_store.h"
#include "batch/contexts.h"
#include "batch/dispatcher.h"
#include "batch/job_loader.h"
#include "batch/node.h"
#include "batch/results_file.h"
#include "batch/scoreboard.h"
#include "batch/tenancies.h"
#include "store/store.h"

enum { COLLECT_MS = 1000 };

struct runner {
	struct runner_options options;
	struct event_base *base;
	struct node *node;         /* owned, as are all of these; NULL: not there */
	struct batch_queue *queue; /* NULL: there is one batch, that of the jobs file */
	struct job_loader *loader;
	struct results_file *results; /* NULL: there is no results file */
	struct timer *collect;        /* NULL, or: the next look for results of others' */
	struct contexts *contexts;
	struct scoreboard *board;
	struct tenancies *tenancies;
	struct dispatcher *dispatcher; /* NULL: it is not begun, or over */
	struct timer *posted;          /* the end */
	char *name;                    /* NULL: all batches */
	char *directory;               /* where paths of jobs start from */
	struct store *store;           /* lent */
	struct query *query;           /* lent */
	int64_t id;                    /* of the batch that is worked on */
	struct summary summary;
	struct rlmd_error error;
	bool draining, over; /* over: nothing is begun any more, and the last results come */
};

/* --- the end ------------------------------------------------------------------------ */

static void on_posted(void *owner)
{
	struct runner *runner = owner;
	struct summary summary = runner->summary;

	timer_free(take_pointer(&runner->collect));
	if (runner->results)
		results_file_sum(runner->results, &summary);
	runner->options.end(runner->options.owner, &summary,
			    runner->error.kind ? &runner->error : NULL);
}

static void finish(struct runner *runner, const struct rlmd_error *err)
{
	if (err && !runner->error.kind)
		runner->error = *err;
	timer_post(runner->posted);
}

static bool store_failed(struct runner *runner, const struct store_result *result)
{
	struct rlmd_error err;

	runner->query = NULL;
	if (!result->fault)
		return false;
	batch_store_explain(result, &err);
	finish(runner, &err);
	return true;
}

static void end_batch(struct runner *runner, const struct store_result *result)
{
	int64_t before = runner->summary.pending;

	scoreboard_count(runner->board, result->counts, result->count);
	summary_count(&runner->summary, result->counts, result->count, runner->results);
	if (runner->error.kind)
		finish(runner, NULL);
	else if (runner->queue)
		batch_queue_next(runner->queue, runner->summary.pending > before);
	else if (runner->results)
		results_file_end(runner->results);
	else
		finish(runner, NULL);
}

static void on_counts(void *owner, const struct store_result *result)
{
	struct runner *runner = owner;

	if (!store_failed(runner, result))
		end_batch(runner, result);
}

/* --- jobs at work --------------------------------------------------------------------- */

static void on_wrote(void *owner)
{
	struct runner *runner = owner;

	if (runner->results)
		results_file_look(runner->results);
}

static void on_warning(void *owner, const char *text)
{
	struct runner *runner = owner;

	runner->options.warn(runner->options.owner, text);
}

/* A server tells of the last end of a batch alone: to tell all of each would cost a batch with many
 * nodes more than its jobs. */
static void on_collect(void *owner)
{
	struct runner *runner = owner;

	timer_free(runner->collect);
	runner->collect = timer_after(runner->base, COLLECT_MS, on_collect, runner);
	if (runner->dispatcher)
		results_file_look(runner->results);
}

/* No job of a tenant ("": nobody's) is begun any more. */
static char *refused_text(const char *tenant, const struct rlmd_error *why)
{
	if (*tenant)
		return xasprintf("tenant '%s': %s; its jobs stay pending", tenant, why->text);
	return xasprintf("%s%s; all such jobs stay pending",
			 why->kind == RLMD_ERROR_INPUT ? "" : "the key: ", why->text);
}

static void on_refused(void *owner, const char *tenant, const struct rlmd_error *why)
{
	auto_free char *text = refused_text(tenant, why);
	struct runner *runner = owner;

	*(why->kind == RLMD_ERROR_SANDBOX ? &runner->summary.unable
					  : &runner->summary.refused) = true;
	on_warning(runner, text);
}

static void on_capped(void *owner, const char *why)
{
	struct runner *runner = owner;

	runner->summary.capped = true;
	runner->options.warn(runner->options.owner, why);
}

static char *halted_text(int64_t failed, int64_t ended)
{
	return xasprintf("%" PRId64 " of %" PRId64
			 " jobs that are over have failed: no job is begun any more, and the next "
			 "start goes on",
			 failed, ended);
}

static void on_halted(void *owner, int64_t failed, int64_t ended)
{
	auto_free char *text = halted_text(failed, ended);
	struct runner *runner = owner;

	runner->summary.halted = true;
	on_warning(runner, text);
}

static void on_idle(void *owner, const struct rlmd_error *err)
{
	struct runner *runner = owner;

	if (err && !runner->error.kind)
		runner->error = *err;
	dispatcher_show(runner->dispatcher);
	dispatcher_free(take_pointer(&runner->dispatcher));
	runner->over = true;
	if (runner->results)
		results_file_look(runner->results);
	else
		runner->query = store_counts(runner->store, runner->id, on_counts, runner);
}

static char *level_text(const char *level)
{
	return xasprintf("the code of several tenants runs with isolation %s from each other, as "
			 "--require allows; L3 is what tenants should have",
			 level);
}

static void dispatch(struct runner *runner)
{
	struct dispatcher_options options = {
		.work =
			{
				.base = runner->base,
				.engine = runner->options.engine,
				.contexts = runner->contexts,
				.directory = runner->directory ? runner->directory : "/",
				.job = runner->options.job,
				.limits = runner->options.limits,
				.spans = runner->options.spans,
			},
		.store = runner->store,
		.tenancies = runner->tenancies,
		.board = runner->board,
		.batch = runner->id,
		.node = node_name(runner->node),
		.max_jobs = runner->options.max_jobs,
		.max_attempts = runner->options.max_attempts,
		.lease_ms = runner->options.lease_ms,
		.halt = runner->options.halt,
		.limit = runner->options.limit,
		.tenants = runner->options.tenants,
		.keeps_limits = !runner->options.jobs,
		.reserve = runner->options.reserve,
		.wrote = on_wrote,
		.capped = on_capped,
		.refused = on_refused,
		.halted = on_halted,
		.tell = on_warning,
		.end = on_idle,
		.owner = runner,
	};
	auto_free char *text = NULL;
	struct rlmd_error err;

	if (!tenancies_begin(runner->tenancies, &runner->summary.level, &err)) {
		finish(runner, &err);
		return;
	}
	if (runner->summary.level)
		on_warning(runner, (text = level_text(runner->summary.level)));
	runner->dispatcher = dispatcher_new(&options);
	if (runner->draining)
		dispatcher_drain(runner->dispatcher);
}

/* A key that was refused may be another one by now. */
static void on_breakers(void *owner, const struct store_result *result)
{
	struct runner *runner = owner;

	if (store_failed(runner, result))
		return;
	for (size_t i = 0; i < result->count; i++)
		store_breaker_close(runner->store, runner->id, result->breakers[i].tenant,
				    result->breakers[i].provider, NULL, NULL);
	dispatch(runner);
}

/* That have jobs left, nobody among them. */
static size_t count_tenants(const struct store_result *result)
{
	size_t tenants = 0;

	for (size_t i = 0; i < result->count; i++) {
		const int64_t *jobs = result->counts[i].jobs;

		tenants += jobs[STORE_JOB_PENDING] || jobs[STORE_JOB_RUNNING];
	}
	return tenants;
}

static void on_first_counts(void *owner, const struct store_result *result)
{
	struct runner *runner = owner;
	size_t tenants;

	if (store_failed(runner, result))
		return;
	scoreboard_count(runner->board, result->counts, result->count);
	tenants = count_tenants(result);
	tenancies_expect(runner->tenancies, tenants);
	if (tenants && !runner->draining)
		runner->query = store_breakers(runner->store, runner->id, on_breakers, runner);
	else
		end_batch(runner, result);
}

static void begin_batch(struct runner *runner, int64_t id)
{
	runner->id = id;
	runner->over = false;
	scoreboard_next(runner->board);
	runner->query = store_counts(runner->store, id, on_first_counts, runner);
}

/* --- results ---------------------------------------------------------------------------- */

static void on_collected(void *owner)
{
	struct runner *runner = owner;

	if (runner->dispatcher || runner->query)
		return;
	if (runner->over)
		runner->query = store_counts(runner->store, runner->id, on_counts, runner);
	else
		begin_batch(runner, runner->id);
}

/* Where it failed, the store has the results all the same, and the next start writes them. */
static void on_results_end(void *owner, const struct rlmd_error *err)
{
	struct runner *runner = owner;

	dispatcher_free(take_pointer(&runner->dispatcher));
	finish(runner, err);
}

static void open_results(struct runner *runner)
{
	const struct results_file_options options = {
		.path = runner->options.results,
		.store = runner->store,
		.batch = runner->id,
		.shared = store_is_shared(runner->options.store),
		.rerun = runner->options.rerun,
		.sort = runner->options.sort,
		.warn = on_warning,
		.done = on_collected,
		.end = on_results_end,
		.owner = runner,
	};
	struct rlmd_error err;

	runner->results = results_file_new(runner->base, &options, &err);
	if (!runner->results)
		finish(runner, &err);
	else if (options.shared)
		runner->collect = timer_after(runner->base, COLLECT_MS, on_collect, runner);
}

/* --- jobs -------------------------------------------------------------------------------- */

static void on_loaded(void *owner, const struct loaded *loaded, const struct rlmd_error *err)
{
	struct runner *runner = owner;

	runner->summary.bad = loaded->bad;
	job_loader_free(take_pointer(&runner->loader));
	if (err) {
		finish(runner, err);
		return;
	}
	runner->id = loaded->batch;
	runner->summary.added = loaded->added;
	if (runner->options.submit)
		runner->query = store_counts(runner->store, runner->id, on_counts, runner);
	else
		open_results(runner);
}

static void load(struct runner *runner)
{
	const struct job_loader_options options = {
		.path = runner->options.jobs,
		.name = runner->name,
		.shard = runner->options.shard,
		.directory = runner->directory,
		.results = runner->options.results,
		.for_others = runner->options.submit || store_is_shared(runner->options.store),
		.tenants = runner->options.tenants,
		.default_tenant = runner->options.default_tenant,
		.add = runner->options.add,
		.skip_bad = runner->options.skip_bad_lines,
		.warn = on_warning,
		.end = on_loaded,
		.owner = runner,
	};

	runner->loader = job_loader_new(runner->base, runner->store, &options);
}

/* --- batches that others loaded ------------------------------------------------------------ */

/* A runner that waits for others sees some batches more than once: the last look is told. */
static void on_next(void *owner, int64_t batch)
{
	struct runner *runner = owner;

	if (runner->options.wait)
		runner->summary = (struct summary){0};
	begin_batch(runner, batch);
}

static void find(struct runner *runner)
{
	const struct batch_queue_options options = {
		.store = runner->store,
		.name = runner->name,
		.wait = runner->options.wait,
		.next = on_next,
		.end = on_results_end,
		.owner = runner,
	};

	runner->queue = batch_queue_new(runner->base, &options);
	if (runner->draining)
		batch_queue_drain(runner->queue);
}

static void on_node(void *owner, const struct rlmd_error *err)
{
	struct runner *runner = owner;

	if (err)
		finish(runner, err);
	else if (runner->options.jobs)
		load(runner);
	else
		find(runner);
}

/* Others have written: there may be jobs to do, and results to collect. */
static void on_changed(void *owner)
{
	struct runner *runner = owner;

	if (runner->queue)
		batch_queue_hear(runner->queue);
	if (!runner->dispatcher)
		return;
	dispatcher_look(runner->dispatcher);
	if (runner->results)
		results_file_look(runner->results);
}

/* --- its life ------------------------------------------------------------------------------ */

static void name_it(struct runner *runner, const struct runner_options *options)
{
	auto_free char *name = NULL;

	if (options->jobs)
		job_loader_split(options->jobs, &runner->directory, &name);
	if (options->batch || name)
		runner->name = job_loader_batch(options->batch ? options->batch : name,
						&options->shard);
}

struct runner *runner_new(struct event_base *base, const struct runner_options *options,
			  struct rlmd_error *err)
{
	struct runner *runner = xcalloc(1, sizeof *runner);
	const struct node_options node = {options->store, !options->jobs, options->wait, on_node,
					  on_changed,     on_warning,     runner};

	runner->options = *options;
	runner->base = base;
	runner->board = scoreboard_new();
	runner->tenancies = tenancies_new(&options->tenancies);
	runner->posted = timer_new(base, on_posted, runner);
	name_it(runner, options);
	runner->contexts = contexts_new(base, runner->directory);
	runner->node = node_new(base, &node, err);
	if (!runner->node) {
		runner_free(runner);
		return NULL;
	}
	runner->store = node_store(runner->node);
	return runner;
}

void runner_free(struct runner *runner)
{
	if (!runner)
		return;
	store_forget(runner->query);
	dispatcher_free(runner->dispatcher);
	batch_queue_free(runner->queue);
	job_loader_free(runner->loader);
	timer_free(runner->collect);
	results_file_free(runner->results);
	node_free(runner->node);
	contexts_free(runner->contexts);
	scoreboard_free(runner->board);
	tenancies_free(runner->tenancies);
	timer_free(runner->posted);
	free(runner->name);
	free(runner->directory);
	free(runner);
}

const struct scoreboard *runner_scoreboard(const struct runner *runner)
{
	if (runner->dispatcher)
		dispatcher_show(runner->dispatcher);
	return runner->board;
}

const char *runner_name(const struct runner *runner)
{
	return runner->name;
}

/* Does not wait for a store that cannot be reached: others find the leases over. */
static void leave(struct runner *runner)
{
	struct rlmd_error err;

	dispatcher_free(take_pointer(&runner->dispatcher));
	error_set(&err, RLMD_ERROR_INTERNAL,
		  "the store cannot be told which jobs wait again: their leases have to end first");
	finish(runner, &err);
}

void runner_drain(struct runner *runner)
{
	runner->draining = true;
	job_loader_stop(runner->loader);
	if (runner->queue)
		batch_queue_drain(runner->queue);
	if (runner->dispatcher)
		dispatcher_drain(runner->dispatcher);
	else if (node_is_away(runner->node))
		leave(runner);
}

void runner_stop(struct runner *runner)
{
	runner->draining = true;
	if (node_is_away(runner->node)) {
		leave(runner);
		return;
	}
	if (runner->queue)
		batch_queue_drain(runner->queue);
	if (runner->dispatcher)
		dispatcher_stop(runner->dispatcher);
}
