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
#include "cli/dry_run.h"
#include "cli/input.h"
#include "cli/plan_result.h"
#include "cli/session.h"
#include "cli/sink.h"
#include "cli/tell.h"

struct plan {
	struct session *session;     /* lent */
	const char *name;            /* lent: of its file, for errors */
	struct rlmd_plan_file *file; /* owned */
	struct sink *metrics;        /* owned; NULL: nobody wants them */
	char *counters;              /* owned: the metrics' text; NULL until the plan is done */
};

/* --- before the start ----------------------------------------------------------- */

static bool read_plan(struct plan *plan, const char *path, struct rlmd_error *err)
{
	bool standard = !strcmp(path, "-");
	size_t size;
	auto_free char *text = standard ? input_stdin("the plan", RLMD_PLAN_TEXT_MAX,
						      plan->session->time, &size, err)
					: file_read(path, RLMD_PLAN_TEXT_MAX, &size, err);

	if (!text)
		return false;
	plan->name = standard ? "standard input" : path;
	plan->file = rlmd_plan_file_new((struct rlmd_text){text, size}, err);
	return plan->file || error_context(err, "%s", plan->name);
}

static bool open_metrics(struct plan *plan, struct rlmd_error *err)
{
	const char *path = plan->session->config.metrics;

	if (!path)
		return true;
	plan->metrics = sink_new(path, false, err);
	return plan->metrics || error_context(err, "the metrics");
}

static struct rlmd_job_options options_of(const struct plan *plan)
{
	struct rlmd_job_options options = session_options(plan->session);

	options.plan = plan->file;
	options.strict = false;
	return options;
}

static bool prepare(struct plan *plan, const char *path, struct rlmd_error *err)
{
	struct session *session = plan->session;
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

static bool check_schemas(struct plan *plan, struct rlmd_error *err)
{
	const struct rlmd_job_options options = options_of(plan);

	if (session_check_schemas(plan->session, &options, err))
		return true;
	return err->kind == RLMD_ERROR_USAGE && error_context(err, "%s", plan->name);
}

static int show_dry_run(struct plan *plan)
{
	const struct rlmd_job_options options = options_of(plan);

	return session_show_job(plan->session, &options, dry_run_format_plan);
}

/* --- the plan ---------------------------------------------------------------------- */

static void take(void *owner, const struct rlmd_result *result)
{
	struct plan *plan = owner;

	plan->counters = rlmd_plan_metrics_text(rlmd_result_metrics(result));
}

static void tell_progress(const struct rlmd_job_status *status,
			  char progress[static JOB_VIEW_PROGRESS_MAX])
{
	snprintf(progress, JOB_VIEW_PROGRESS_MAX, "%" PRId64 " of %" PRId64 " operations",
		 status->operations_ended, status->operations);
}

static bool has_runs(const struct plan *plan)
{
	const struct rlmd_plan *operations = rlmd_plan_file_plan(plan->file);

	for (size_t i = 0; i < rlmd_plan_count(operations); i++)
		if (rlmd_plan_operation(operations, i)->mode == RLMD_OPERATION_RUN)
			return true;
	return false;
}

static bool carry_out(struct plan *plan, struct rlmd_error *err)
{
	const struct session_job job = {
		.interrupted = "interrupted: what is under way is cancelled",
		.progress = tell_progress,
		.take = take,
		.owner = plan,
	};
	struct session *session = plan->session;

	return (!has_runs(plan) || session_open_sandbox(session, false, err)) &&
	       check_schemas(plan, err) && session_run(session, &job, options_of(plan), err);
}

/* --- the result ------------------------------------------------------------------- */

/* The object of a plan that never came to its end. */
static json_t *failed_result(const struct plan *plan, const struct rlmd_error *err)
{
	return json_pack("{s:{}, s:I, s:i, s:n, s:[], s:{s:s, s:o}, s:o}", "results", "totalTokens",
			 (json_int_t)plan->session->last.tokens, "duration", 0, "winner",
			 "cancelled", "error", "kind", rlmd_error_name(err->kind), "message",
			 json_from_text(text_of(err->text)), "warnings",
			 json_copy(plan->session->notes));
}

static int report_failure(struct plan *plan, const struct rlmd_error *err)
{
	const struct config *config = &plan->session->config;
	json_auto_t *object = failed_result(plan, err);
	struct session_result result = {
		.object = config->json || config->jsonl ? object : NULL,
		.failure = err,
		.status = rlmd_error_exit_status(err->kind),
	};

	return session_report(plan->session, &result);
}

static bool write_metrics(struct plan *plan, struct rlmd_error *err)
{
	return !plan->metrics || (sink_write(plan->metrics, text_of(plan->counters), err) &&
				  sink_commit(plan->metrics, true, err));
}

static int report(struct plan *plan)
{
	struct session *session = plan->session;
	struct plan_tally tally = plan_result_tally(session->result);
	auto_free char *work = plan_result_text(&tally);
	struct session_result result = {.object = session->result, .work = work};
	struct rlmd_error err;
	int status;

	result.status = plan_result_status(&tally);
	if (!result.status)
		result.status = rlmd_error_exit_status(session->failure.kind);
	else if (tally.first)
		plan_result_error(&tally, &session->failure);
	if (result.status && !session->signal)
		result.failure = &session->failure;
	status = session_report(session, &result);
	if (write_metrics(plan, &err))
		return status;
	tell_error("the metrics: %s", err.text);
	return status ? status : rlmd_error_exit_status(err.kind);
}

static int run(struct plan *plan, const char *path)
{
	struct rlmd_error err;
	bool ok = prepare(plan, path, &err);

	ok = session_check_signals(plan->session, &err) && ok;
	if (plan->session->config.dry_run)
		ok = ok && check_schemas(plan, &err);
	if (ok && plan->session->config.dry_run)
		return show_dry_run(plan);
	ok = ok && carry_out(plan, &err);
	session_close(plan->session);
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

int command_plan(struct session *session, int count, char **words)
{
	struct plan plan = {.session = session};
	struct rlmd_error err;
	int status;

	if (!check_words(&session->config, count, words, &err))
		return command_refuse(COMMAND_PLAN, &err);
	status = run(&plan, words[0]);
	rlmd_plan_file_free(plan.file);
	sink_free(plan.metrics);
	free(plan.counters);
	return status;
}
