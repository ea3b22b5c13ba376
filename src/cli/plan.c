/*
 * rlmd plan: operations that run in parallel, race, or wait for each other.
 *
 * The plan is checked before anything is started. The result is an object,
 * whatever became of the operations; a plan that never began has one only
 * where --json or --jsonl asks for it.
 */
#include <inttypes.h>
#include <rlmd/job.h>
#include <rlmd/plan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/plan_dry_run.h"
#include "cli/plan_result.h"
#include "cli/session.h"
#include "cli/sink.h"
#include "cli/tell.h"

struct plan {
	struct session session;
	struct rlmd_plan_file *file; /* owned */
	struct sink *metrics;        /* owned; NULL: nobody wants them */
	struct rlmd_job *job;        /* owned */
	json_t *result;              /* owned; NULL until the plan is done */
	char *counters;              /* owned: the metrics' text; NULL likewise */
	int64_t tokens;              /* of a plan that was stopped without a result */
	int64_t max_cost;            /* RLMD_UNLIMITED: none */
	struct rlmd_error error;     /* why the plan as a whole has no success */
};

/* --- before the start ----------------------------------------------------------- */

static bool read_plan(struct plan *plan, const char *path, struct rlmd_error *err)
{
	bool standard = !strcmp(path, "-");
	size_t size;
	auto_free char *text = standard ? input_stdin("the plan", RLMD_PLAN_TEXT_MAX,
						      plan->session.time, &size, err)
					: file_read(path, RLMD_PLAN_TEXT_MAX, &size, err);
	struct rlmd_plan_error wrong;

	if (!text)
		return false;
	plan->file = rlmd_plan_file_new((struct rlmd_text){text, size}, &wrong);
	return plan->file || error_set(err, RLMD_ERROR_INPUT, "%s: %s",
				       standard ? "standard input" : path, wrong.text);
}

static bool open_metrics(struct plan *plan, struct rlmd_error *err)
{
	const char *path = plan->session.config.metrics;

	if (!path)
		return true;
	plan->metrics = sink_new(path, false, err);
	return plan->metrics || error_context(err, "the metrics");
}

static struct rlmd_job_options options_of(const struct plan *plan)
{
	struct rlmd_job_options options = session_job(&plan->session);

	options.plan = plan->file;
	options.strict = false;
	return options;
}

static bool prepare(struct plan *plan, const char *path, struct rlmd_error *err)
{
	struct session *session = &plan->session;
	struct rlmd_job_options options;

	session_note_strays(session);
	if (!session_open_output(session, OUTPUT_JSON, err) || !open_metrics(plan, err) ||
	    !read_plan(plan, path, err) || !session_spend_time(session, err))
		return false;
	if (!config_given(&session->config, OPTION_max_parallel))
		session->max_calls = (int64_t)rlmd_plan_file_config(plan->file)->max_parallel;
	if (!session_open(session, err))
		return false;
	options = options_of(plan);
	return session->config.dry_run || rlmd_job_check(session->engine, &options, err);
}

static int show_dry_run(struct plan *plan)
{
	const struct rlmd_job_options options = options_of(plan);

	return session_show_job(&plan->session, &options, plan_dry_run_format);
}

/* --- the plan ---------------------------------------------------------------------- */

static void on_event(void *owner, struct rlmd_job *job, struct rlmd_text event)
{
	struct plan *plan = owner;

	(void)job;
	session_event(&plan->session, event);
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	const struct rlmd_error *error = rlmd_result_error(result);
	struct plan *plan = owner;

	(void)job;
	plan->result = session_read(rlmd_result_json(result));
	plan->counters = rlmd_plan_metrics_text(rlmd_result_metrics(result));
	if (error)
		plan->error = *error;
	session_leave(&plan->session);
}

static void on_interrupt(void *owner)
{
	struct plan *plan = owner;

	rlmd_job_interrupt(plan->job);
}

static struct rlmd_job_status status_now(const struct plan *plan)
{
	struct rlmd_job_status status = {.size = sizeof status};

	rlmd_job_get_status(plan->job, &status);
	return status;
}

static struct rlmd_job_status status_of(const void *owner, char place[static STATUS_PLACE_MAX])
{
	struct rlmd_job_status status = status_now(owner);

	snprintf(place, STATUS_PLACE_MAX, "%" PRId64 " of %" PRId64 " operations",
		 status.operations_ended, status.operations);
	return status;
}

static bool has_runs(const struct plan *plan)
{
	const struct rlmd_plan *operations = rlmd_plan_file_plan(plan->file);

	for (size_t i = 0; i < rlmd_plan_count(operations); i++)
		if (rlmd_plan_operation(operations, i)->mode == RLMD_OPERATION_RUN)
			return true;
	return false;
}

static bool start_job(struct plan *plan, struct rlmd_error *err)
{
	const struct rlmd_hooks hooks = {
		.size = sizeof hooks,
		.event = on_event,
		.events = session_events(&plan->session),
		.end = on_end,
		.owner = plan,
	};
	struct rlmd_job_options options = options_of(plan);

	options.hooks = &hooks;
	plan->job = rlmd_job_start(plan->session.engine, &options, err);
	session_note_job(&plan->session, plan->job);
	return plan->job;
}

static bool carry_out(struct plan *plan, struct rlmd_error *err)
{
	struct session *session = &plan->session;
	const struct session_work work = {
		.interrupt = on_interrupt,
		.interrupted = "interrupted: what is under way is cancelled",
		.status = status_of,
		.owner = plan,
	};

	if (has_runs(plan) && !session_open_sandbox(session, false, err))
		return false;
	return start_job(plan, err) && session_wait(session, &work, err);
}

/* Workers, transfers and the live line are gone before the result is printed. */
static void stop(struct plan *plan)
{
	if (plan->job) {
		plan->tokens = status_now(plan).tokens;
		plan->max_cost = status_now(plan).max_cost;
	}
	rlmd_job_free(take_pointer(&plan->job));
	session_close(&plan->session);
}

/* --- the result ------------------------------------------------------------------- */

/* The object of a plan that never came to its end. */
static json_t *failed_result(const struct plan *plan, const struct rlmd_error *err)
{
	return json_pack("{s:{}, s:I, s:i, s:n, s:[], s:{s:s, s:o}, s:o}", "results", "totalTokens",
			 (json_int_t)plan->tokens, "duration", 0, "winner", "cancelled", "error",
			 "kind", rlmd_error_name(err->kind), "message",
			 json_from_text(text_of(err->text)), "warnings",
			 json_copy(plan->session.notes));
}

static int report_failure(struct plan *plan, const struct rlmd_error *err)
{
	const struct config *config = &plan->session.config;
	json_auto_t *object = failed_result(plan, err);
	struct session_result result = {
		.object = config->json || config->jsonl ? object : NULL,
		.failure = err,
		.status = rlmd_error_exit_status(err->kind),
	};

	return session_report(&plan->session, &result);
}

static bool write_metrics(struct plan *plan, struct rlmd_error *err)
{
	return !plan->metrics || (sink_write(plan->metrics, text_of(plan->counters), err) &&
				  sink_commit(plan->metrics, err));
}

static int report(struct plan *plan)
{
	struct plan_tally tally = plan_tally(plan->result);
	auto_free char *work = plan_tally_text(&tally);
	struct session_result result = {
		.object = plan->result, .work = work, .max_cost = plan->max_cost};
	struct rlmd_error err;
	int status;

	result.status = plan_exit_status(&tally);
	if (!result.status)
		result.status = rlmd_error_exit_status(plan->error.kind);
	else if (tally.first)
		plan_tally_error(&tally, &plan->error);
	if (result.status && !plan->session.signal)
		result.failure = &plan->error;
	status = session_report(&plan->session, &result);
	if (write_metrics(plan, &err))
		return status;
	tell_error("the metrics: %s", err.text);
	return status ? status : rlmd_error_exit_status(err.kind);
}

static int run(struct plan *plan, const char *path)
{
	struct rlmd_error err;
	bool ok = prepare(plan, path, &err);

	ok = session_check_signals(&plan->session, &err) && ok;
	if (ok && plan->session.config.dry_run)
		return show_dry_run(plan);
	ok = ok && carry_out(plan, &err);
	stop(plan);
	return ok ? report(plan) : report_failure(plan, &err);
}

/* --- the command line --------------------------------------------------------------- */

static bool check_words(const struct config *config, int count, char *const *words,
			struct rlmd_error *err)
{
	if (config->layers[OPTION_strict] == CONFIG_ARGUMENT && config->strict && !config->dry_run)
		return error_set(err, RLMD_ERROR_USAGE,
				 "plan has no use for --strict but with --dry-run");
	if (count == 1)
		return true;
	if (count)
		return error_set(err, RLMD_ERROR_USAGE, "'%s' is one argument too many", words[1]);
	return error_set(err, RLMD_ERROR_USAGE,
			 "there is no plan: name its file, or '-' for standard input");
}

static int start(struct plan *plan, int argc, char **argv)
{
	struct session *session = &plan->session;
	struct rlmd_error err;
	int first, status;

	if (!session_begin(session, COMMAND_PLAN, argc, argv, &first, &status))
		return status;
	if (!check_words(&session->config, argc - first, argv + first, &err))
		return command_refuse(COMMAND_PLAN, &err);
	return run(plan, argv[first]);
}

int command_plan(int argc, char **argv)
{
	struct plan plan = {0};
	int status = start(&plan, argc, argv);

	stop(&plan);
	session_done(&plan.session);
	rlmd_plan_file_free(plan.file);
	sink_free(plan.metrics);
	json_decref(plan.result);
	free(plan.counters);
	return status;
}
