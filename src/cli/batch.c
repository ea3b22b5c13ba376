/*
 * rlmd batch: the tasks of a file, several at once, with a line for each in a file of results.
 * rlmd work: the jobs that others have loaded into a store, on as many machines as there are.
 *
 * The store has what is to outlive this process (batch/runner.h); here are the signals,
 * and the report at the end.
 */
#include <event2/event.h>
#include <inttypes.h>
#include <rlmd/job.h>
#include <rlmd/trace.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "batch/runner.h"
#include "batch/scoreboard.h"
#include "cli/batch_report.h"
#include "cli/batch_settings.h"
#include "cli/batch_watch.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/job_settings.h"
#include "cli/providers.h"
#include "cli/session.h"
#include "cli/span_log.h"
#include "cli/tell.h"

enum { STOP_AT_ONCE = 3 }; /* signals */

struct batch_command {
	struct session *session;          /* lent */
	const char *jobs;                 /* lent: the file; NULL: others load the jobs */
	struct batch_settings settings;   /* owned */
	struct runner *runner;            /* owned */
	struct batch_watch *watch;        /* owned */
	struct rlmd_span_exporter *spans; /* owned; or NULL */
	struct summary summary;
	json_t *report;          /* owned: what became of it, when that is known */
	struct rlmd_error error; /* why it did not go on to its end */
	int64_t began;
	bool ended;
};

/* --- at work ---------------------------------------------------------------------- */

static struct rlmd_sandbox *open_sandbox(void *owner, const struct tenancy_needs *needs,
					 struct rlmd_error *err)
{
	struct session *session = ((struct batch_command *)owner)->session;
	struct rlmd_sandbox_options options = job_settings_tenant(&session->config, needs);
	struct rlmd_sandbox *sandbox = rlmd_engine_sandbox(session->engine, &options, err);

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

static bool begin(struct batch_command *command, struct rlmd_error *err)
{
	struct session *session = command->session;
	const struct config *config = &session->config;
	struct runner_options options = {
		.jobs = command->jobs,
		.results = config->results,
		.batch = config->batch,
		.store = command->settings.store,
		.shard = command->settings.shard,
		.add = config->add,
		.skip_bad_lines = config->skip_bad_lines,
		.default_tenant = config->default_tenant,
		.submit = config->submit,
		.wait = config->wait,
		.rerun = {config->rerun_failed, config->rerun_degraded},
		.sort = config->sort,
		.max_jobs = config->jobs,
		.max_attempts = config->max_attempts,
		.lease_ms = config->lease,
		.halt = command->settings.halt,
		.reserve = config->reserve_memory,
		.engine = session->engine,
		.job = session_options(session),
		.limits = limits_of(session),
		.limit = batch_settings_limit(config),
		.tenants = &config->tenants,
		.tenancies =
			{
				.engine = session->engine,
				.tenants = &config->tenants,
				.kind = config->provider,
				.require = config->require,
				.allow_outside = config->allow_outside,
				.root = config->root,
				.needs_root = !command->jobs,
				.provider = open_provider,
				.sandbox = open_sandbox,
				.owner = command,
			},
		.warn = on_warning,
		.end = on_end,
		.owner = command,
	};

	command->spans = options.spans = span_log_exporter(session->base, config->otel_content);
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

/* A batch that came to no end has not counted the jobs that are left. */
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

/* A batch that only loads jobs asks no model, and needs no key. A cache that cannot be opened is
 * an error of the command line, and not of every job. */
static bool open_session(struct batch_command *command, struct rlmd_error *err)
{
	const struct config *config = &command->session->config;
	auto_close int cache = -1;

	if (config->submit)
		return session_open_engine(command->session, err);
	if (config->cache)
		cache = file_own_directory(config->cache, "cache", err);
	return (!config->cache || cache >= 0) && session_open(command->session, err);
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
	auto_evbuffer struct evbuffer *out = buffer_new();
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

/* `rlmd work` has done its work also where jobs failed: their results say it. */
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
	auto_evbuffer struct evbuffer *line = buffer_new();
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
	unprinted = command_print(text_in(line));
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
	if (status || summary->degraded)
		batch_report_tell(command->report, command->session->config.results);
	if (failure)
		tell_error("%s", failure->text);
	if (command->session->signal)
		status = 128 + command->session->signal;
	return print_report(command, failure, status);
}

/* Carries out the jobs of a file, or, where that is NULL, those that the store has. */
static int run(struct session *session, const char *jobs)
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
	if (!batch_settings_read(&session->config, &command.settings, &err))
		return command_refuse(session->command, &err);
	session_note_strays(session);
	batch_settings_set_parallel(&session->config);
	ok = session_check_signals(session, &err) && carry_out(&command, &err);
	batch_watch_free(take_pointer(&command.watch));
	make_report(&command);
	runner_free(take_pointer(&command.runner));
	span_log_flush(command.spans);
	rlmd_span_exporter_free(command.spans);
	session_close(session);
	status = report(&command, ok ? NULL : &err);
	batch_settings_done(&command.settings);
	json_decref(command.report);
	return status;
}

/* --- the command line ------------------------------------------------------------------- */

int command_batch(struct session *session, int count, char **words)
{
	struct rlmd_error err;

	if (!batch_settings_check_batch(&session->config, count, words, &err))
		return command_refuse(COMMAND_BATCH, &err);
	return run(session, words[0]);
}

int command_work(struct session *session, int count, char **words)
{
	struct rlmd_error err;

	if (!batch_settings_check_work(&session->config, count, words, &err))
		return command_refuse(COMMAND_WORK, &err);
	return run(session, NULL);
}
