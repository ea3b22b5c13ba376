/*
 * rlmd exec: one task, one answer.
 *
 * Errors in the command line, the input and the settings are found before anything is started; all
 * that was started is stopped before anything is printed.
 */
#include <inttypes.h>
#include <rlmd/context.h>
#include <rlmd/job.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/dry_run.h"
#include "cli/input.h"
#include "cli/session.h"

struct exec {
	struct session *session; /* lent */
	const char *word;        /* lent: the task, or "-"; NULL with --task-file */
	struct input input;
	char *answer; /* owned; NULL: none */
	size_t answer_size;
};

/* --- before the start ----------------------------------------------------------- */

static void note(struct exec *exec)
{
	const char *warning;

	session_note_strays(exec->session);
	for (size_t i = 0; (warning = rlmd_context_note(exec->input.context, i)); i++)
		session_note(exec->session, warning);
}

static struct rlmd_text task_of(const struct exec *exec)
{
	return text_from(exec->input.task, exec->input.task_size);
}

static struct rlmd_job_options options_of(const struct exec *exec)
{
	struct rlmd_job_options options = session_options(exec->session);

	options.task = task_of(exec);
	options.without_tree = !exec->session->config.json &&
			       !output_has_events(exec->session->output);
	options.context = exec->input.context;
	options.schema = text_from(exec->input.schema, exec->input.schema_size);
	return options;
}

static bool read_task(struct exec *exec, struct rlmd_error *err)
{
	struct session *session = exec->session;

	return session_open_output(session, OUTPUT_ANSWER, err) &&
	       input_schema(&exec->input, &session->config, err) &&
	       input_task(&exec->input, &session->config, exec->word, session->time, err);
}

static bool check(struct exec *exec,
		  bool (*how)(struct rlmd_engine *, const struct rlmd_job_options *,
			      struct rlmd_error *),
		  struct rlmd_error *err)
{
	struct rlmd_job_options options;

	if (!session_spend_time(exec->session, err))
		return false;
	options = options_of(exec);
	options.schema = (struct rlmd_text){0};
	return exec->session->config.dry_run || how(exec->session->engine, &options, err);
}

/* An error of its schema has the name of its file. */
static bool name_schema(const struct exec *exec, struct rlmd_error *err)
{
	return err->kind == RLMD_ERROR_USAGE &&
	       error_context(err, "--schema %s", exec->session->config.schema);
}

/* Complains of the schema before the input is read. */
static bool check_form(struct exec *exec, struct rlmd_error *err)
{
	const struct config *config = &exec->session->config;
	const struct rlmd_job_options options = options_of(exec);

	return config->dry_run || !config->schema ||
	       rlmd_job_check(exec->session->engine, &options, err) || name_schema(exec, err);
}

static bool check_schema(struct exec *exec, struct rlmd_error *err)
{
	const struct rlmd_job_options options = options_of(exec);

	return !exec->session->config.schema ||
	       session_check_schemas(exec->session, &options, err) || name_schema(exec, err);
}

/* The python3 of the sandbox loads while the context is read: where there is one, as it seems. */
static bool begin_sandbox(struct exec *exec, struct rlmd_error *err)
{
	const struct config *config = &exec->session->config;

	return config->dry_run || !input_seems_there(config) ||
	       session_begin_sandbox(exec->session, err);
}

static bool prepare(struct exec *exec, struct rlmd_error *err)
{
	struct session *session = exec->session;
	bool ok = read_task(exec, err) && session_open(session, err) &&
		  check(exec, rlmd_job_check, err) && check_form(exec, err) &&
		  begin_sandbox(exec, err) &&
		  input_context(&exec->input, &session->config, session->time, err);

	note(exec);
	return ok && check(exec, rlmd_job_prepare, err);
}

/* A schema is checked by the Python that would hold answers to it. */
static bool prepare_dry_run(struct exec *exec, struct rlmd_error *err)
{
	return !exec->session->config.schema ||
	       (session_open_sandbox(exec->session, false, err) && check_schema(exec, err));
}

static int show_dry_run(struct exec *exec)
{
	const struct rlmd_job_options options = options_of(exec);

	return session_show_job(exec->session, &options, dry_run_format);
}

/* --- the run ---------------------------------------------------------------------- */

/* An answer that failed may stand beside its error. */
static void take(void *owner, const struct rlmd_result *result)
{
	struct rlmd_text answer = rlmd_result_output(result);
	struct exec *exec = owner;

	if (exec->session->failure.kind && !answer.size)
		return;
	exec->answer = xstrndup(answer.bytes, answer.size);
	exec->answer_size = answer.size;
}

static void tell_progress(const struct rlmd_job_status *status,
			  char progress[static JOB_VIEW_PROGRESS_MAX])
{
	if (status->turn)
		snprintf(progress, JOB_VIEW_PROGRESS_MAX, "turn %" PRId64 " | depth %" PRId64,
			 status->turn, status->depth);
	else
		snprintf(progress, JOB_VIEW_PROGRESS_MAX, "starting | depth %" PRId64,
			 status->depth);
}

static bool answer_task(struct exec *exec, struct rlmd_error *err)
{
	const struct session_job job = {
		.interrupted = "interrupted: an answer is made of what there is; once more stops "
			       "it now",
		.progress = tell_progress,
		.take = take,
		.owner = exec,
	};
	struct session *session = exec->session;

	if (!session_open_sandbox(session, false, err) || !check_schema(exec, err) ||
	    !session_run(session, &job, options_of(exec), err))
		return false;
	if (session->failure.kind)
		*err = session->failure;
	return !session->failure.kind;
}

/* --- the result ------------------------------------------------------------------- */

static int report(struct exec *exec, const struct rlmd_error *failure)
{
	struct session_result result = {
		.answer = text_from(exec->answer, exec->answer_size),
		.failure = failure,
		.status = failure ? rlmd_error_exit_status(failure->kind) : 0,
	};
	json_t *object = exec->session->result;
	int64_t turns = json_get_integer(json_object_get(object, "usage"), "iterations", 0);
	auto_free char *work = xasprintf("%" PRId64 " turn%s", turns, turns == 1 ? "" : "s");

	json_auto_t *nothing = object ? NULL : session_no_result(exec->session, failure);

	result.work = object ? work : NULL;
	result.object = object ? object : nothing;
	return session_report(exec->session, &result);
}

static int run(struct exec *exec)
{
	struct rlmd_error err;
	bool ok = prepare(exec, &err);

	ok = session_check_signals(exec->session, &err) && ok;
	if (exec->session->config.dry_run)
		ok = ok && prepare_dry_run(exec, &err);
	if (ok && exec->session->config.dry_run)
		return show_dry_run(exec);
	ok = ok && answer_task(exec, &err);
	session_close(exec->session);
	return report(exec, ok ? NULL : &err);
}

/* --- the command line --------------------------------------------------------------- */

int command_exec(struct session *session, int count, char **words)
{
	struct exec exec = {.session = session, .word = words[0]};
	struct rlmd_error err;
	int status;

	if (!input_check_words(&session->config, count, words, &err))
		return command_refuse(COMMAND_EXEC, &err);
	input_imply_directory(&session->config);
	status = run(&exec);
	free(exec.answer);
	input_done(&exec.input);
	return status;
}
