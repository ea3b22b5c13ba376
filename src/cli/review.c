/*
 * rlmd review: a task over a tree of files, whose answer is findings; and a gate for pipelines.
 *
 * The model is told what is wrong with the form of its answer, and the findings are put in their
 * places when there is one. Reports appear all or none, and none of a review that failed.
 */
#include <inttypes.h>
#include <rlmd/context.h>
#include <rlmd/job.h>
#include <rlmd/review.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/dry_run.h"
#include "cli/input.h"
#include "cli/no_result.h"
#include "cli/review_reports.h"
#include "cli/session.h"
#include "cli/tell.h"

enum { STATUS_GATE = 3 };

struct review_command {
	struct session session;
	struct input input;
	struct review_reports reports;
	struct rlmd_review *review; /* owned */
	struct rlmd_text task;      /* lent by the review */
	struct rlmd_job *job;       /* owned */
	json_t *result;             /* owned; NULL until the job is done */
	int64_t max_cost;
	bool reviewed;           /* there are findings, or it is known that there are none */
	struct rlmd_error error; /* why there are none, or none that count */
};

/* --- before the start ----------------------------------------------------------------------- */

static bool check_words(const struct config *config, int count, char *const *words,
			struct rlmd_error *err)
{
	if (config->github && (config->json || config->jsonl) && !config->output)
		return error_set(err, RLMD_ERROR_USAGE,
				 "--github and --json both want standard output: name a file for "
				 "one of them, with -o");
	return count <= 1 || error_set(err, RLMD_ERROR_USAGE,
				       "'%s' is one argument too many: a review is of one "
				       "directory",
				       words[1]);
}

/* A revision's files have their places in the repository anyway. */
static bool is_directory(const char *source)
{
	return strncmp(source, "git:", 4) != 0;
}

static bool make_review(struct review_command *command, struct rlmd_error *err)
{
	const struct config *config = &command->session.config;
	struct rlmd_review_options options = {
		.size = sizeof options,
		.prompt = config->prompt,
		.rules = config->rules,
		.baseline = config->baseline,
		.fail_on = config->fail_on,
		.only_changed = config->only_changed_lines,
		.directory = is_directory(config->contexts.items[0]) ? config->contexts.items[0]
								     : NULL,
	};

	if (config->task_file &&
	    !input_task(&command->input, config, NULL, command->session.time, err))
		return false;
	options.task = text_from(command->input.task, command->input.task_size);
	command->review = rlmd_review_new(&options, err);
	return command->review;
}

static void note(struct review_command *command)
{
	const char *warning;

	session_note_strays(&command->session);
	if (!command->input.context)
		return;
	for (size_t i = 0; (warning = rlmd_context_note(command->input.context, i)); i++)
		session_note(&command->session, warning);
}

static bool read_input(struct review_command *command, struct rlmd_error *err)
{
	struct session *session = &command->session;

	return session_open_output(session, OUTPUT_REPORT, err) &&
	       review_reports_open(&command->reports, &session->config, err) &&
	       make_review(command, err) &&
	       input_context(&command->input, &session->config, session->time, err) &&
	       rlmd_review_task(command->review, command->input.context, &command->task, err) &&
	       session_spend_time(session, err);
}

static struct rlmd_job_options options_of(const struct review_command *command)
{
	struct rlmd_job_options options = session_job(&command->session);

	options.task = command->task;
	options.without_tree = !command->session.config.json &&
			       !output_has_events(command->session.output);
	options.context = command->input.context;
	return options;
}

static bool prepare(struct review_command *command, struct rlmd_error *err)
{
	struct rlmd_job_options options;
	bool ok = read_input(command, err);

	note(command);
	if (ok && !command->task.size)
		return true;
	if (!ok || !session_open(&command->session, err))
		return false;
	options = options_of(command);
	return command->session.config.dry_run ||
	       (rlmd_job_prepare(command->session.engine, &options, err) &&
		session_begin_sandbox(&command->session, err));
}

static int show_dry_run(struct review_command *command)
{
	const struct rlmd_job_options options = options_of(command);

	return session_show_job(&command->session, &options, dry_run_format);
}

/* --- the run -------------------------------------------------------------------------------- */

/* The result is told when the findings are in it. */
static void on_event(void *owner, struct rlmd_job *job, struct rlmd_text event)
{
	struct review_command *command = owner;

	(void)job;
	if (!output_is_result(event))
		session_event(&command->session, event);
}

static void on_check(void *owner, struct rlmd_job *job, struct rlmd_text answer,
		     struct rlmd_check *check)
{
	struct review_command *command = owner;
	auto_free char *wrong = rlmd_review_wrong(command->review, answer);

	(void)job;
	if (wrong)
		rlmd_check_reject(check, wrong);
	else
		rlmd_check_accept(check);
}

static void take_findings(struct review_command *command, struct rlmd_text answer)
{
	auto_free char *report = NULL;
	size_t size;

	command->reviewed = rlmd_review_take(command->review, command->input.context, answer,
					     &command->error);
	if (!command->reviewed)
		return;
	report = rlmd_review_report(command->review, RLMD_REVIEW_JSON, &size);
	json_object_set_new(command->result, "review", session_read(text_from(report, size)));
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	const struct rlmd_error *error = rlmd_result_error(result);
	struct rlmd_job_status status = {.size = sizeof status};
	struct review_command *command = owner;

	rlmd_job_get_status(job, &status);
	command->max_cost = status.max_cost;
	command->result = session_read(rlmd_result_json(result));
	if (error)
		command->error = *error;
	else
		take_findings(command, rlmd_result_output(result));
	session_leave(&command->session);
}

static void on_interrupt(void *owner)
{
	struct review_command *command = owner;

	rlmd_job_interrupt(command->job);
}

static struct rlmd_job_status status_of(const void *owner, char place[static STATUS_PLACE_MAX])
{
	const struct review_command *command = owner;
	struct rlmd_job_status status = {.size = sizeof status};

	rlmd_job_get_status(command->job, &status);
	snprintf(place, STATUS_PLACE_MAX, "reviewing | turn %" PRId64 " | depth %" PRId64,
		 status.turn, status.depth);
	return status;
}

static bool start_job(struct review_command *command, struct rlmd_error *err)
{
	const struct rlmd_hooks hooks = {
		.size = sizeof hooks,
		.event = on_event,
		.events = session_events(&command->session),
		.check = on_check,
		.end = on_end,
		.owner = command,
	};
	struct rlmd_job_options options = options_of(command);

	options.hooks = &hooks;
	command->job = rlmd_job_start(command->session.engine, &options, err);
	session_note_job(&command->session, command->job);
	return command->job;
}

static bool carry_out(struct review_command *command, struct rlmd_error *err)
{
	const struct session_work work = {
		.interrupt = on_interrupt,
		.interrupted = "interrupted: findings are asked for, of what there is; once more "
			       "stops it now",
		.status = status_of,
		.owner = command,
	};

	if (!session_open_sandbox(&command->session, false, err) || !start_job(command, err) ||
	    !session_wait(&command->session, &work, err))
		return false;
	if (command->error.kind)
		*err = command->error;
	return !command->error.kind;
}

static void cancel(struct review_command *command)
{
	rlmd_job_cancel(command->job);
	while (!command->result)
		rlmd_engine_wait(command->session.engine, command->job, NULL);
}

/* Workers, transfers and the live line are gone before anything is printed. */
static void stop(struct review_command *command)
{
	rlmd_job_free(take_pointer(&command->job));
	session_close(&command->session);
}

/* --- the result ------------------------------------------------------------------------------ */

static int report_failure(struct review_command *command, const struct rlmd_error *failure)
{
	struct session_result result = {
		.failure = failure,
		.status = rlmd_error_exit_status(failure->kind),
		.max_cost = command->max_cost,
		.work = command->result ? "a review" : NULL,
	};

	if (!command->result)
		command->result = no_result(command->session.notes, failure);
	result.object = command->result;
	return session_report(&command->session, &result);
}

static int report(struct review_command *command)
{
	const struct config *config = &command->session.config;
	size_t failing = rlmd_review_failing(command->review), size;
	auto_free char *text = rlmd_review_report(
		command->review, config->github ? RLMD_REVIEW_GITHUB : RLMD_REVIEW_TEXT, &size);
	const struct session_result result = {
		.object = command->result,
		.answer = text_from(text, size),
		.status = failing ? STATUS_GATE : 0,
		.max_cost = command->max_cost,
		.work = command->task.size ? "a review" : NULL,
	};
	struct rlmd_error err;

	if (!review_reports_write(&command->reports, config, command->review, &err))
		return report_failure(command, &err);
	if (failing)
		tell("%zu finding%s at or over --fail-on %s", failing, failing == 1 ? "" : "s",
		     config->fail_on);
	return session_report(&command->session, &result);
}

/* Nothing was changed, or all of that is gone or left out: nobody is asked. */
static bool take_nothing(struct review_command *command, struct rlmd_error *err)
{
	tell("nothing to review: nothing was changed, or what was is gone or left out");
	command->result = no_result(command->session.notes, NULL);
	take_findings(command, text_of("{\"findings\": []}"));
	if (command->error.kind)
		*err = command->error;
	return !command->error.kind;
}

static int run(struct review_command *command)
{
	struct rlmd_error err;
	bool ok = prepare(command, &err);

	ok = session_check_signals(&command->session, &err) && ok;
	if (ok && command->task.size && command->session.config.dry_run)
		return show_dry_run(command);
	ok = ok && (command->task.size ? carry_out(command, &err) : take_nothing(command, &err));
	if (command->job && !command->result)
		cancel(command);
	stop(command);
	return ok ? report(command) : report_failure(command, &err);
}

/* --- the command line ------------------------------------------------------------------------- */

static int start(struct review_command *command, int argc, char **argv)
{
	struct session *session = &command->session;
	struct rlmd_error err;
	int first, status;

	if (!session_begin(session, COMMAND_REVIEW, argc, argv, &first, &status))
		return status;
	if (!check_words(&session->config, argc - first, argv + first, &err) ||
	    !config_set(&session->config, CONFIG_ARGUMENT, OPTION_contexts,
			first < argc ? argv[first] : ".", &err))
		return command_refuse(COMMAND_REVIEW, &err);
	return run(command);
}

int command_review(int argc, char **argv)
{
	struct review_command command = {0};
	int status = start(&command, argc, argv);

	stop(&command);
	session_done(&command.session);
	review_reports_done(&command.reports);
	rlmd_review_free(command.review);
	input_done(&command.input);
	json_decref(command.result);
	return status;
}
