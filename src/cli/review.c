/*
 * rlmd review: a task over a tree of files, whose answer is findings; and a gate for pipelines.
 *
 * The model is told what is wrong with the form of its answer, and the findings are put in their
 * places when there is one. A review that failed has no reports.
 */
#include <inttypes.h>
#include <rlmd/context.h>
#include <rlmd/job.h>
#include <rlmd/review.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/dry_run.h"
#include "cli/input.h"
#include "cli/job_settings.h"
#include "cli/review_reports.h"
#include "cli/review_result.h"
#include "cli/session.h"
#include "cli/tell.h"

enum { STATUS_GATE = 3 };

struct review_command {
	struct session *session; /* lent */
	struct input input;
	struct review_reports *reports; /* owned */
	struct rlmd_review *review;     /* owned */
	struct rlmd_text task;          /* lent by the review */
	struct rlmd_function function;  /* of the first reading; lent likewise */
};

/* --- before the start ----------------------------------------------------------------------- */

static bool check_words(const struct config *config, int count, char *const *words,
			struct rlmd_error *err)
{
	if (config->github && (config->json || config->jsonl) && !config->output)
		return error_set(err, RLMD_ERROR_USAGE,
				 "--github and --json both want standard output: name a file for "
				 "one of them, with -o");
	if (!job_settings_check_review(config, config->rules, err))
		return false;
	return count <= 1 || error_set(err, RLMD_ERROR_USAGE,
				       "'%s' is one argument too many: a review is of one "
				       "directory",
				       words[1]);
}

/* A revision's files have their paths in the repository anyway. */
static bool is_directory(const char *source)
{
	return strncmp(source, "git:", 4) != 0;
}

static bool check_baseline(const struct config *config, struct rlmd_error *err)
{
	return !config->baseline || !access(config->baseline, F_OK) ||
	       error_errno(err, RLMD_ERROR_INPUT,
			   "there is no baseline yet: 'rlmd review --sarif %s' makes one, of the "
			   "code whose findings are not to count; without --baseline all do; %s",
			   config->baseline, config->baseline);
}

static bool make_review(struct review_command *command, struct rlmd_error *err)
{
	const struct config *config = &command->session->config;
	size_t about_size = 0;
	auto_free char *about = config->about
					? file_read(config->about, TASK_SIZE_MAX, &about_size, err)
					: NULL;
	struct rlmd_review_options options = job_settings_review(config, config->rules);

	if ((config->about && !about) || !check_baseline(config, err))
		return false;
	if (config->task_file &&
	    !input_task(&command->input, config, NULL, command->session->time, err))
		return false;
	options.task = text_from(command->input.task, command->input.task_size);
	options.about = text_from(about, about_size);
	if (is_directory(config->contexts.items[0]))
		options.directory = config->contexts.items[0];
	command->review = rlmd_review_new(&options, err);
	return command->review;
}

static void note(struct review_command *command)
{
	const char *warning;

	session_note_strays(command->session);
	if (!command->input.context)
		return;
	for (size_t i = 0; (warning = rlmd_context_note(command->input.context, i)); i++)
		session_note(command->session, warning);
}

static bool read_input(struct review_command *command, struct rlmd_error *err)
{
	struct session *session = command->session;

	if (!session_open_output(session, OUTPUT_REPORT, err))
		return false;
	command->reports = review_reports_new(&session->config, err);
	return command->reports && make_review(command, err) &&
	       input_context(&command->input, &session->config, session->time, err) &&
	       rlmd_review_task(command->review, command->input.context, &command->task, err) &&
	       session_spend_time(session, err);
}

static struct rlmd_job_options options_of(struct review_command *command)
{
	struct rlmd_job_options options = session_options(command->session);

	options.task = command->task;
	options.without_tree = !command->session->config.json &&
			       !output_has_events(command->session->output);
	options.context = command->input.context;
	rlmd_review_first_code(command->review, &options.setup, &options.first_code);
	if (options.first_code.size) {
		command->function = rlmd_review_function(command->review);
		options.functions = &command->function;
		options.function_count = 1;
	}
	return options;
}

static bool prepare(struct review_command *command, struct rlmd_error *err)
{
	struct rlmd_job_options options;
	bool ok = read_input(command, err);

	note(command);
	if (ok && !command->task.size)
		return true;
	if (!ok || !session_open(command->session, err))
		return false;
	options = options_of(command);
	return command->session->config.dry_run ||
	       (rlmd_job_prepare(command->session->engine, &options, err) &&
		session_begin_sandbox(command->session, err));
}

static int show_dry_run(struct review_command *command)
{
	const struct rlmd_job_options options = options_of(command);

	return session_show_job(command->session, &options, dry_run_format);
}

/* --- the run -------------------------------------------------------------------------------- */

static void check(void *owner, struct rlmd_job *job, struct rlmd_text answer,
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
	struct session *session = command->session;

	review_result_take(command->review, command->input.context, answer, session->result,
			   &session->failure);
}

static void take(void *owner, const struct rlmd_result *result)
{
	struct review_command *command = owner;
	struct session *session = command->session;
	auto_free char *warning = NULL;

	if (!session->failure.kind) {
		take_findings(command, rlmd_result_output(result));
		return;
	}
	warning = review_result_take_spare(command->review, command->input.context, session->result,
					   &session->failure);
	if (warning)
		session_note(session, warning);
}

static void tell_progress(const struct rlmd_job_status *status,
			  char progress[static JOB_VIEW_PROGRESS_MAX])
{
	snprintf(progress, JOB_VIEW_PROGRESS_MAX, "reviewing | turn %" PRId64 " | depth %" PRId64,
		 status->turn, status->depth);
}

static bool carry_out(struct review_command *command, struct rlmd_error *err)
{
	const struct session_job job = {
		.interrupted = "interrupted: findings are asked for, of what there is; once more "
			       "stops it now",
		.result_later = true,
		.progress = tell_progress,
		.check = check,
		.take = take,
		.owner = command,
	};
	struct session *session = command->session;

	return session_open_sandbox(session, false, err) &&
	       session_run(session, &job, options_of(command), err);
}

/* --- the result ------------------------------------------------------------------------------ */

static int report_failure(struct review_command *command, const struct rlmd_error *failure)
{
	struct session_result result = {
		.failure = failure,
		.status = rlmd_error_exit_status(failure->kind),
		.work = command->session->result ? "a review" : NULL,
	};

	if (!command->session->result)
		command->session->result = session_no_result(command->session, failure);
	result.object = command->session->result;
	return session_report(command->session, &result);
}

static int report(struct review_command *command)
{
	const struct config *config = &command->session->config;
	size_t failing = rlmd_review_failing(command->review), size;
	auto_free char *text = rlmd_review_report(
		command->review, config->github ? RLMD_REVIEW_GITHUB : RLMD_REVIEW_TEXT, &size);
	const struct session_result result = {
		.object = command->session->result,
		.answer = text_from(text, size),
		.status = failing ? STATUS_GATE : 0,
		.work = command->task.size ? "a review" : NULL,
	};
	struct rlmd_error err;

	if (!review_reports_write(command->reports, command->review, &err))
		return report_failure(command, &err);
	if (failing)
		tell("%zu finding%s at or over --fail-on %s", failing, failing == 1 ? "" : "s",
		     config->fail_on);
	return session_report(command->session, &result);
}

/* Nothing was changed, or all of that is gone or left out: nobody is asked. */
static bool take_nothing(struct review_command *command)
{
	tell("nothing to review: nothing was changed, or what was is gone or left out");
	command->session->result = session_no_result(command->session, NULL);
	take_findings(command, text_of("{\"findings\": []}"));
	return true;
}

static int run(struct review_command *command)
{
	struct rlmd_error err;
	bool ok = prepare(command, &err);

	ok = session_check_signals(command->session, &err) && ok;
	if (ok && command->task.size && command->session->config.dry_run)
		return show_dry_run(command);
	ok = ok && (command->task.size ? carry_out(command, &err) : take_nothing(command));
	if (ok && command->session->failure.kind) {
		err = command->session->failure;
		ok = false;
	}
	session_close(command->session);
	return ok ? report(command) : report_failure(command, &err);
}

/* --- the command line ------------------------------------------------------------------------- */

int command_review(struct session *session, int count, char **words)
{
	struct review_command command = {.session = session};
	struct rlmd_error err;
	int status;

	if (!check_words(&session->config, count, words, &err) ||
	    !config_set(&session->config, CONFIG_ARGUMENT, OPTION_contexts, count ? words[0] : ".",
			&err))
		return command_refuse(COMMAND_REVIEW, &err);
	status = run(&command);
	review_reports_free(command.reports);
	rlmd_review_free(command.review);
	input_done(&command.input);
	return status;
}
