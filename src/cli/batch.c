/*
 * rlmd batch: the tasks of a file, several at once, with a line for each in a file of results.
 */
#include "cli/batch.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <inttypes.h>
#include <rlmd/job.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "batch/runner.h"
#include "batch/scoreboard.h"
#include "cli/batch_report.h"
#include "cli/batch_watch.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/print.h"
#include "cli/providers.h"
#include "cli/session.h"
#include "cli/store_command.h"
#include "cli/tell.h"

enum { STOP_AT_ONCE = 3 }; /* signals */

struct batch_command {
	struct session *session; /* lent */
	const char *jobs;        /* lent: the file; NULL: others load the jobs */
	char *store;             /* owned: the place */
	struct halt halt;
	struct jobs_file_shard shard;
	struct runner *runner;     /* owned */
	struct batch_watch *watch; /* owned */
	struct summary summary;
	json_t *report;          /* owned: what became of it, when that is known */
	struct rlmd_error error; /* why it did not go on to its end */
	int64_t began;
	bool ended;
};

/* --- at work ---------------------------------------------------------------------- */

/* As GNU parallel has it: a few failures are no rate. */
enum { HALT_FAILURES = 3, PERCENT = 100 };

/* When it is enough: "10%", or 10. */
static bool read_halt(const struct config *config, struct halt *ret, struct rlmd_error *err)
{
	const char *end = config->halt;
	int64_t percent = 0;

	if (config->fail_fast && config->halt)
		return error_set(err, RLMD_ERROR_USAGE,
				 "--fail-fast and --halt exclude each other");
	*ret = (struct halt){.failures = config->fail_fast};
	if (!config->halt)
		return true;
	while (*end >= '0' && *end <= '9' && percent <= PERCENT)
		percent = 10 * percent + *end++ - '0';
	if (percent < 1 || percent > PERCENT || (*end && strcmp(end, "%")))
		return error_set(err, RLMD_ERROR_USAGE,
				 "--halt takes a percentage of jobs from 1%% to 100%%, not '%s'",
				 config->halt);
	*ret = (struct halt){.failures = HALT_FAILURES, .percent = percent};
	return true;
}

static bool read_words(const struct config *config, struct batch_command *ret,
		       struct rlmd_error *err)
{
	if (config->store && config->journal)
		return error_set(err, RLMD_ERROR_USAGE,
				 "--store and --journal are the same option");
	if (config->shard && !jobs_file_parse_shard(config->shard, &ret->shard, err))
		return error_context(err, "--shard");
	return read_halt(config, &ret->halt, err);
}

static char *place_of(const struct config *config)
{
	if (config->store || config->journal)
		return xstrdup(config->store ? config->store : config->journal);
	/* Never the name of a kind of store: it is a path. */
	return xasprintf("sqlite:%s.store", config->results);
}

/* Each tenant's has uids that are no other's. */
static struct rlmd_sandbox *open_sandbox(void *owner, const struct tenancy_needs *needs,
					 struct rlmd_error *err)
{
	struct batch_command *command = owner;
	struct session *session = command->session;
	const struct config *config = &session->config;
	struct rlmd_sandbox_options options = {
		.size = sizeof options,
		.python = config->python,
		.preload = (const char *const *)config->preload.items,
		.worker_memory = (size_t)(needs->worker_memory ? needs->worker_memory
							       : config->worker_memory),
		.pool_parts = needs->parts,
		.first_uid = (uint32_t)config->first_uid,
		.require = needs->require,
	};
	struct rlmd_sandbox *sandbox;
	uint32_t first, count;

	rlmd_sandbox_uids(options.first_uid, &first, &count);
	if (needs->place)
		options.first_uid = first + needs->place * count;
	sandbox = rlmd_engine_sandbox(session->engine, &options, err);
	return session_check_signals(session, err) ? sandbox : NULL;
}

static struct rlmd_provider *open_provider(void *owner, const char *kind, const char *key_file,
					   struct rlmd_error *err)
{
	struct batch_command *command = owner;

	return providers_other(&command->session->config, kind, key_file, err);
}

static void on_warning(void *owner, const char *text)
{
	(void)owner;
	tell_warning("%s", text);
}

static void on_end(void *owner, const struct summary *summary, const struct rlmd_error *err)
{
	struct batch_command *command = owner;

	command->summary = *summary;
	if (err)
		command->error = *err;
	command->ended = true;
	session_leave(command->session);
}

static void on_interrupt(void *owner)
{
	struct batch_command *command = owner;

	runner_drain(command->runner);
}

/* Its time is each job's, from that one's start on. */
static struct rlmd_limits limits_of(const struct session *session)
{
	struct rlmd_limits limits = session->limits;

	limits.time_ms = session->config.max_time;
	return limits;
}

/* Of all jobs together. */
static struct rlmd_amount limit_of(const struct config *config)
{
	bool cost = config_given(config, OPTION_max_batch_cost);
	bool tokens = config_given(config, OPTION_max_batch_tokens);

	return (struct rlmd_amount){cost ? config->max_batch_cost : RLMD_UNLIMITED,
				    tokens ? config->max_batch_tokens : RLMD_UNLIMITED};
}

static bool begin(struct batch_command *command, struct rlmd_error *err)
{
	struct session *session = command->session;
	const struct config *config = &session->config;
	const struct runner_options options = {
		.jobs = command->jobs,
		.results = config->results,
		.batch = config->batch,
		.store = command->store,
		.shard = command->shard,
		.add = config->add,
		.skip_bad_lines = config->skip_bad_lines,
		.submit = config->submit,
		.wait = config->wait,
		.rerun_failed = config->rerun_failed,
		.sort = config->sort,
		.max_jobs = config->jobs,
		.max_attempts = config->max_attempts,
		.lease_ms = config->lease,
		.halt = command->halt,
		.reserve = config->reserve_memory,
		.engine = session->engine,
		.job = session_job(session),
		.limits = limits_of(session),
		.limit = limit_of(config),
		.tenants = &config->tenants,
		.tenancies =
			{
				.engine = session->engine,
				.tenants = &config->tenants,
				.kind = config->provider,
				.require = config->require,
				.allow_outside = config->allow_outside,
				.needs_root = !command->jobs,
				.provider = open_provider,
				.sandbox = open_sandbox,
				.owner = command,
			},
		.warn = on_warning,
		.end = on_end,
		.owner = command,
	};

	command->runner = runner_new(session->base, &options, err);
	return command->runner;
}

/* After a second signal, too, the store is told which jobs wait again; but a store that is away may
 * not hear it, and who says it a third time does not wait. */
static void stop(struct batch_command *command)
{
	if (!command->ended)
		runner_stop(command->runner);
	while (!command->ended && interrupt_count() < STOP_AT_ONCE &&
	       !event_base_loop(command->session->base, EVLOOP_ONCE))
		continue;
	if (!command->ended)
		error_set(&command->error, RLMD_ERROR_CANCELLED,
			  "stopped at once: jobs that were at work wait until their leases are "
			  "over");
}

/* What came to no end has not counted what it left. */
static void make_report(struct batch_command *command)
{
	struct summary *summary = &command->summary;
	const struct scoreboard *board;
	struct scoreboard_sum sum;

	if (!command->runner)
		return;
	board = runner_scoreboard(command->runner);
	sum = scoreboard_sum(board, clock_ms());
	if (!summary->pending)
		summary->pending = sum.jobs[STORE_JOB_PENDING] + sum.jobs[STORE_JOB_RUNNING];
	command->report = batch_report_new(summary, board, runner_name(command->runner));
}

/* Who only loads jobs asks nobody, and needs no key. */
static bool open_session(struct batch_command *command, struct rlmd_error *err)
{
	return command->session->config.submit ? session_open_engine(command->session, err)
					       : session_open(command->session, err);
}

static bool carry_out(struct batch_command *command, struct rlmd_error *err)
{
	const struct session_work work = {
		.interrupt = on_interrupt,
		.interrupted = "interrupted: no job is begun any more, those that are go on to "
			       "their end; once more stops them now, and they wait for the next "
			       "start",
		.owner = command,
	};

	if (!session_spend_time(command->session, err) || !open_session(command, err) ||
	    !begin(command, err))
		return false;
	command->watch = batch_watch_new(command->session, command->runner, err);
	if (!command->watch)
		return false;
	session_wait(command->session, &work, err);
	stop(command);
	if (command->error.kind)
		*err = command->error;
	return !command->error.kind;
}

/* --- the end ------------------------------------------------------------------------ */

static void tell_summary(const struct batch_command *command, const char *verb)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	auto_free char *text = NULL;
	char took[16];

	clock_format(clock_ms() - command->began, took);
	summary_write(&command->summary, out);
	text = text_drain(out, NULL);
	tell("%s %s: %s", verb, took, text);
}

static int report_submitted(const struct batch_command *command)
{
	const struct summary *summary = &command->summary;
	const struct summary loaded = {.succeeded = 1, .bad = summary->bad};

	tell("%s: %" PRId64 " jobs, %" PRId64 " of them new; rlmd work carries them out",
	     command->jobs, summary->succeeded + summary->failed + summary->pending,
	     summary->added);
	return summary_exit_status(&loaded);
}

/* Who works on others' jobs has done so also where some failed: their results say it. */
static int status_of(const struct batch_command *command)
{
	struct summary summary = command->summary;

	if (!command->jobs)
		summary.failed = 0;
	return summary_exit_status(&summary);
}

/* Returns the exit status. */
static int print_report(struct batch_command *command, const struct rlmd_error *failure, int status)
{
	auto_evbuffer struct evbuffer *line = evbuffer_new();
	json_t *object = command->report;
	int unprinted;

	if (!command->session->config.json)
		return status;
	object = object ? json_incref(object) : json_object();
	json_object_set_new(object, "success", json_boolean(!status));
	json_object_set_new(object, "exitStatus", json_integer(status));
	json_object_set_new(object, "duration", json_integer(clock_ms() - command->began));
	json_object_set_new(object, "error",
			    failure ? json_pack("{s:s, s:o}", "kind",
						rlmd_error_name(failure->kind), "message",
						json_from_text(text_of(failure->text)))
				    : json_null());
	json_write_line(object, line);
	json_decref(object);
	unprinted = print_text(text_in(line));
	return status ? status : unprinted;
}

static int report(struct batch_command *command, const struct rlmd_error *failure)
{
	const struct summary *summary = &command->summary;
	int status = failure ? rlmd_error_exit_status(failure->kind) : status_of(command);
	bool ran = summary->succeeded || summary->failed || summary->pending;

	if (!failure && command->session->config.submit)
		return report_submitted(command);
	if (ran)
		tell_summary(command, command->session->signal ? "interrupted after"
				      : failure                ? "failed after"
							       : "done in");
	if (status)
		batch_report_tell(command->report, command->session->config.results);
	if (failure)
		tell_error("%s", failure->text);
	if (command->session->signal)
		status = 128 + command->session->signal;
	return print_report(command, failure, status);
}

/* A file and the environment say it as they do for other commands. */
static void set_parallel(struct config *config)
{
	if (config_given(config, OPTION_batch_parallel) ||
	    !config_given(config, OPTION_max_parallel))
		config->max_parallel = config->batch_parallel;
}

int batch_run(struct session *session, const char *jobs)
{
	struct batch_command command = {
		.session = session,
		.jobs = jobs,
		.began = clock_ms(),
	};
	struct rlmd_error err;
	bool ok;
	int status;

	batch_watch_install();
	if (!read_words(&session->config, &command, &err))
		return command_refuse(session->command, &err);
	command.store = place_of(&session->config);
	session_note_strays(session);
	set_parallel(&session->config);
	ok = session_check_signals(session, &err) && carry_out(&command, &err);
	batch_watch_free(take_pointer(&command.watch));
	make_report(&command);
	runner_free(take_pointer(&command.runner));
	session_close(session);
	status = report(&command, ok ? NULL : &err);
	free(command.store);
	json_decref(command.report);
	return status;
}

/* --- rlmd batch ----------------------------------------------------------------------- */

static bool check_words(const struct config *config, int count, char *const *words,
			struct rlmd_error *err)
{
	if (count != 1)
		return error_set(err, RLMD_ERROR_USAGE,
				 "a batch is of one jobs file, and %d were named", count);
	if (config->submit && (config->results || !config->store))
		return error_set(err, RLMD_ERROR_USAGE,
				 "--submit needs --store, and no -o: 'rlmd results' writes those");
	if (!config->results && !config->submit)
		return error_set(err, RLMD_ERROR_USAGE,
				 "-o says where the results are to be written, and is missing");
	if (config->results && !strcmp(config->results, "-"))
		return error_set(err, RLMD_ERROR_USAGE,
				 "the results go to a file that can be gone on with, not to "
				 "standard output");
	return strcmp(words[0], "-") != 0 ||
	       error_set(err, RLMD_ERROR_USAGE,
			 "the jobs come from a file that can be read again, not from standard "
			 "input");
}

static int start(struct session *session, int argc, char **argv)
{
	struct rlmd_error err;
	int first, status;

	if (!session_begin(session, COMMAND_BATCH, argc, argv, &first, &status))
		return status;
	store_command_hide(argc, argv);
	if (!check_words(&session->config, argc - first, argv + first, &err))
		return command_refuse(COMMAND_BATCH, &err);
	return batch_run(session, argv[first]);
}

int command_batch(int argc, char **argv)
{
	struct session session = {0};
	int status = start(&session, argc, argv);

	session_done(&session);
	return status;
}
