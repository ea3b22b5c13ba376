/*
 * rlmd exec: one task, one answer.
 *
 * What is wrong with the command line, the input and the settings is found
 * before anything is started, and what is started is stopped before anything
 * is printed.
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
#include "cli/no_result.h"
#include "cli/session.h"

struct exec {
	struct session session;
	const char *word; /* lent: the task, or "-"; NULL with --task-file */
	struct input input;
	struct rlmd_job *job; /* owned */
	json_t *result;       /* owned; NULL until the job is done */
	char *answer;         /* owned; NULL: none */
	size_t answer_size;
	int64_t max_cost;
	struct rlmd_error error; /* why there is no answer, or none that counts */
};

/* --- before the start ----------------------------------------------------------- */

static void note(struct exec *exec)
{
	const char *warning;

	session_note_strays(&exec->session);
	for (size_t i = 0; (warning = rlmd_context_note(exec->input.context, i)); i++)
		session_note(&exec->session, warning);
}

static struct rlmd_text task_of(const struct exec *exec)
{
	return text_from(exec->input.task, exec->input.task_size);
}

static struct rlmd_job_options options_of(const struct exec *exec)
{
	struct rlmd_job_options options = session_job(&exec->session);

	options.task = task_of(exec);
	options.without_tree = !exec->session.config.json &&
			       !output_has_events(exec->session.output);
	options.context = exec->input.context;
	options.schema = text_from(exec->input.schema, exec->input.schema_size);
	return options;
}

static bool read_task(struct exec *exec, struct rlmd_error *err)
{
	struct session *session = &exec->session;

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

	if (!session_spend_time(&exec->session, err))
		return false;
	options = options_of(exec);
	return exec->session.config.dry_run || how(exec->session.engine, &options, err);
}

/* The python3 of the sandbox loads while the context is read: where there is one, as it seems. */
static bool begin_sandbox(struct exec *exec, struct rlmd_error *err)
{
	const struct config *config = &exec->session.config;

	return config->dry_run || !input_seems_there(config) ||
	       session_begin_sandbox(&exec->session, err);
}

static bool prepare(struct exec *exec, struct rlmd_error *err)
{
	struct session *session = &exec->session;
	bool ok = read_task(exec, err) && session_open(session, err) &&
		  check(exec, rlmd_job_check, err) && begin_sandbox(exec, err) &&
		  input_context(&exec->input, &session->config, session->time, err);

	note(exec);
	return ok && check(exec, rlmd_job_prepare, err);
}

static int show_dry_run(struct exec *exec)
{
	const struct rlmd_job_options options = options_of(exec);

	return session_show_job(&exec->session, &options, dry_run_format);
}

/* --- the run ---------------------------------------------------------------------- */

static void on_event(void *owner, struct rlmd_job *job, struct rlmd_text event)
{
	struct exec *exec = owner;

	(void)job;
	session_event(&exec->session, event);
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	const struct rlmd_error *error = rlmd_result_error(result);
	struct rlmd_text answer = rlmd_result_output(result);
	struct rlmd_job_status status = {.size = sizeof status};
	struct exec *exec = owner;

	rlmd_job_get_status(job, &status);
	exec->max_cost = status.max_cost;
	exec->result = session_read(rlmd_result_json(result));
	if (error)
		exec->error = *error;
	if (!error || answer.size) {
		exec->answer = xstrndup(answer.bytes, answer.size);
		exec->answer_size = answer.size;
	}
	session_leave(&exec->session);
}

static void on_interrupt(void *owner)
{
	struct exec *exec = owner;

	rlmd_job_interrupt(exec->job);
}

static struct rlmd_job_status status_of(const void *owner, char place[static STATUS_PLACE_MAX])
{
	const struct exec *exec = owner;
	struct rlmd_job_status status = {.size = sizeof status};

	rlmd_job_get_status(exec->job, &status);
	if (status.turn)
		snprintf(place, STATUS_PLACE_MAX, "turn %" PRId64 " | depth %" PRId64, status.turn,
			 status.depth);
	else
		snprintf(place, STATUS_PLACE_MAX, "starting | depth %" PRId64, status.depth);
	return status;
}

static bool start_job(struct exec *exec, struct rlmd_error *err)
{
	const struct rlmd_hooks hooks = {
		.size = sizeof hooks,
		.event = on_event,
		.events = session_events(&exec->session),
		.end = on_end,
		.owner = exec,
	};
	struct rlmd_job_options options = options_of(exec);

	options.hooks = &hooks;
	exec->job = rlmd_job_start(exec->session.engine, &options, err);
	session_note_job(&exec->session, exec->job);
	return exec->job;
}

static bool answer_task(struct exec *exec, struct rlmd_error *err)
{
	const struct session_work work = {
		.interrupt = on_interrupt,
		.interrupted = "interrupted: an answer is made of what there is; once more stops "
			       "it now",
		.status = status_of,
		.owner = exec,
	};

	if (!session_open_sandbox(&exec->session, false, err) || !start_job(exec, err) ||
	    !session_wait(&exec->session, &work, err))
		return false;
	if (exec->error.kind)
		*err = exec->error;
	return !exec->error.kind;
}

/* What was left before its end has a result all the same: that it was stopped, and what it had
 * used by then. */
static void cancel(struct exec *exec)
{
	rlmd_job_cancel(exec->job);
	while (!exec->result)
		rlmd_engine_wait(exec->session.engine, exec->job, NULL);
}

/* Workers, transfers and the live line are gone before the answer is printed. */
static void stop(struct exec *exec)
{
	rlmd_job_free(take_pointer(&exec->job));
	session_close(&exec->session);
}

/* --- the result ------------------------------------------------------------------- */

static int report(struct exec *exec, const struct rlmd_error *failure)
{
	struct session_result result = {
		.answer = text_from(exec->answer, exec->answer_size),
		.failure = failure,
		.status = failure ? rlmd_error_exit_status(failure->kind) : 0,
		.max_cost = exec->max_cost,
	};
	int64_t turns = json_get_integer(json_object_get(exec->result, "usage"), "iterations", 0);
	auto_free char *work = xasprintf("%" PRId64 " turn%s", turns, turns == 1 ? "" : "s");

	if (exec->result)
		result.work = work;
	if (!exec->result)
		exec->result = no_result(exec->session.notes, failure);
	result.object = exec->result;
	return session_report(&exec->session, &result);
}

static int run(struct exec *exec)
{
	struct rlmd_error err;
	bool ok = prepare(exec, &err);

	ok = session_check_signals(&exec->session, &err) && ok;
	if (ok && exec->session.config.dry_run)
		return show_dry_run(exec);
	ok = ok && answer_task(exec, &err);
	if (exec->job && !exec->result)
		cancel(exec);
	stop(exec);
	return report(exec, ok ? NULL : &err);
}

/* --- the command line --------------------------------------------------------------- */

static int start(struct exec *exec, int argc, char **argv)
{
	struct session *session = &exec->session;
	struct rlmd_error err;
	int first, status;

	if (!session_begin(session, COMMAND_EXEC, argc, argv, &first, &status))
		return status;
	if (!input_check_words(&session->config, argc - first, argv + first, &err))
		return command_refuse(COMMAND_EXEC, &err);
	exec->word = argv[first];
	return run(exec);
}

int command_exec(int argc, char **argv)
{
	struct exec exec = {0};
	int status = start(&exec, argc, argv);

	stop(&exec);
	session_done(&exec.session);
	json_decref(exec.result);
	free(exec.answer);
	input_done(&exec.input);
	return status;
}
