/*
 * rlmd plan: operations that run in parallel, race, or wait for each other.
 *
 * The plan is checked before anything is started. The result is an object,
 * whatever became of the operations; a plan that never began has one only
 * where --json or --jsonl asks for it.
 */
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
#include "engine/job.h"

struct plan {
	struct session session;
	struct rlmd_plan_file *file; /* owned */
	struct sink *metrics;        /* owned; NULL: nobody wants them */
	struct rlmd_job *job;        /* owned */
	char *id;                /* owned: what the plan's own events call it; NULL before them */
	size_t ended;            /* operations so far */
	json_t *result;          /* owned; NULL until the plan is done */
	char *counters;          /* owned: the metrics' text; NULL likewise */
	int64_t tokens;          /* of a plan that was stopped without a result */
	struct rlmd_error error; /* why the plan as a whole has no success */
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

/* Calls wait for nothing that the plan lets run, unless somebody said how many there may be. */
static void allow_calls(struct plan *plan)
{
	struct job_config *settings = &plan->session.settings;
	size_t most = rlmd_plan_file_config(plan->file)->max_parallel;

	if (!config_given(&plan->session.config, OPTION_max_parallel) &&
	    settings->max_parallel < (int)most)
		settings->max_parallel = (int)most;
}

static bool check_models(struct plan *plan, struct rlmd_error *err)
{
	const struct rlmd_plan *operations = rlmd_plan_file_plan(plan->file);

	for (size_t i = 0; i < rlmd_plan_count(operations); i++) {
		const char *model = rlmd_plan_operation(operations, i)->model;

		if (!llm_allow(plan->session.llm, model, err) ||
		    (model && !session_check_price(&plan->session, model, err)))
			return error_context(err, "operation \"%s\"",
					     rlmd_plan_operation(operations, i)->id);
	}
	return true;
}

static bool prepare(struct plan *plan, const char *path, struct rlmd_error *err)
{
	struct session *session = &plan->session;
	bool ok;

	if (!session_open_output(session, OUTPUT_JSON, err) || !open_metrics(plan, err) ||
	    !read_plan(plan, path, err) || !session_spend_time(session, err))
		return false;
	allow_calls(plan);
	ok = session_open(session, err) && check_models(plan, err);
	session_note(session, NULL);
	return ok;
}

static int show_dry_run(struct plan *plan)
{
	struct session *session = &plan->session;
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	json_auto_t *object = plan_dry_run(session->base, plan->file, session->llm,
					   &session->settings);

	plan_dry_run_format(object, session->settings.limits.cost, out);
	return session_show(session, object, text_in(out));
}

/* --- the plan ---------------------------------------------------------------------- */

/* The code of a run in the plan may carry out plans of its own: the first that starts is ours. */
static void on_event(void *owner, json_t *event)
{
	struct plan *plan = owner;
	struct rlmd_text name = json_get_text(event, "event"), id = json_get_text(event, "run");

	if (!plan->id && text_equal(name, "plan_start"))
		plan->id = text_copy(id);
	if (text_equal(name, "operation_end") && plan->id && text_equal(id, plan->id))
		plan->ended++;
	session_event(&plan->session, event);
}

static void on_end(void *owner, const struct rlmd_result *result)
{
	struct plan *plan = owner;

	plan->result = json_incref(result->object);
	plan->counters = rlmd_plan_metrics_text(&result->metrics);
	plan->error = result->error;
	session_leave(&plan->session);
}

static void on_interrupt(void *owner)
{
	struct plan *plan = owner;

	rlmd_job_interrupt(plan->job);
}

static struct rlmd_job_status status_of(const void *owner, char place[static STATUS_PLACE_MAX])
{
	const struct plan *plan = owner;

	snprintf(place, STATUS_PLACE_MAX, "%zu of %zu operations", plan->ended,
		 rlmd_plan_count(rlmd_plan_file_plan(plan->file)));
	return rlmd_job_status(plan->job);
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
	struct session *session = &plan->session;
	const struct session_work work = {
		.interrupt = on_interrupt,
		.interrupted = "interrupted: what is under way is cancelled",
		.status = status_of,
		.owner = plan,
	};
	/* What was warned of before the start belongs into the result too. */
	struct context notes = {.notes = session->notes};
	struct job_options options = {
		.plan = plan->file,
		.context = &notes,
		.provider = session->config.provider,
		.record_dir = session->config.record,
		.replay_dir = session->config.replay,
		.event = on_event,
		.end = on_end,
		.owner = plan,
	};

	if (has_runs(plan) && !session_open_sandbox(session, false, err))
		return false;
	options.config = session->settings;
	options.sandbox = session->sandbox;
	plan->job = rlmd_job_start(session->engine, &options, err);
	return plan->job && session_wait(session, &work, err);
}

/* Workers, transfers and the live line are gone before the result is printed. */
static void stop(struct plan *plan)
{
	if (plan->job)
		plan->tokens = rlmd_job_status(plan->job).tokens;
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
	struct session_result result = {.object = plan->result, .work = work};
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

static bool check_words(int count, char *const *words, struct rlmd_error *err)
{
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
	if (!check_words(argc - first, argv + first, &err))
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
	free(plan.id);
	return status;
}
