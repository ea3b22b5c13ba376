/*
 * rlmd results, status and merge: what has become of batches, by their stores and files of results.
 *
 * The first two look into a store: an event loop runs until they are done or a signal comes.
 */
#include <event2/event.h>
#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/text.h"
#include "batch/results_fetch.h"
#include "batch/results_merge.h"
#include "batch/store_status.h"
#include "batch/summary.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/session.h"
#include "cli/status_text.h"
#include "cli/tell.h"

/* Zero before its begin. */
struct store_command {
	const struct config *config; /* lent */
	struct event_base *base;     /* owned */
	struct summary summary;      /* of results */
	json_t *status;              /* owned */
	bool ended;                  /* its work said so */
	struct rlmd_error error;     /* why it failed */
};

static bool check_store(const struct config *config, int words, struct rlmd_error *err)
{
	if (words)
		return error_set(err, RLMD_ERROR_USAGE, "there are %d words too many", words);
	return config->store ||
	       error_set(err, RLMD_ERROR_USAGE, "--store says where the jobs are, and is missing");
}

static void end(struct store_command *command, const struct rlmd_error *err)
{
	if (err)
		command->error = *err;
	command->ended = true;
	event_base_loopbreak(command->base);
}

static void on_signal(evutil_socket_t fd, short what, void *owner)
{
	struct store_command *command = owner;

	(void)fd;
	(void)what;
	event_base_loopbreak(command->base);
}

/* Returns the exit status: 0, that of the error, which is told, or of a signal. */
static int wait_for_end(struct store_command *command)
{
	struct event *signals = loop_event(command->base, interrupt_fd(), EV_READ, on_signal,
					   command);

	loop_add(signals, NULL);
	event_base_dispatch(command->base);
	event_free(signals);
	if (!command->ended)
		return 128 + interrupt_signal();
	if (!command->error.kind)
		return 0;
	tell_error("%s", command->error.text);
	return rlmd_error_exit_status(command->error.kind);
}

static void on_warning(void *owner, const char *text)
{
	(void)owner;
	tell_warning("%s", text);
}

static int run(const struct session *session, int words, int (*carry_out)(struct store_command *))
{
	struct store_command command = {.config = &session->config};
	struct rlmd_error err;
	int status;

	if (!check_store(command.config, words, &err))
		return command_refuse(session->command, &err);
	command.base = loop_new();
	status = carry_out(&command);
	json_decref(command.status);
	event_base_free(command.base);
	return status;
}

/* --- rlmd results ------------------------------------------------------------------------ */

static void on_fetched(void *owner, const struct summary *summary, const struct rlmd_error *err)
{
	struct store_command *command = owner;

	command->summary = *summary;
	end(command, err);
}

static int report_results(const struct store_command *command)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	auto_free char *text = NULL;

	summary_write(&command->summary, out);
	text = text_drain(out, NULL);
	if (!command->config->quiet)
		tell("%s: %s", command->config->results, text);
	return summary_exit_status(&command->summary);
}

static bool check_results(const struct config *config, struct rlmd_error *err)
{
	return (config->results && strcmp(config->results, "-") != 0) ||
	       error_set(err, RLMD_ERROR_USAGE,
			 "-o names the file of results, which may be one to go on with, and is "
			 "missing");
}

static int fetch_results(struct store_command *command)
{
	const struct config *config = command->config;
	const struct results_fetch_options options = {
		.store = config->store,
		.batch = config->batch,
		.path = config->results,
		.sort = config->sort,
		.warn = on_warning,
		.end = on_fetched,
		.owner = command,
	};
	struct results_fetch *fetch;
	struct rlmd_error err;
	int status;

	if (!check_results(config, &err) ||
	    !(fetch = results_fetch_new(command->base, &options, &err)))
		return command_refuse(COMMAND_RESULTS, &err);
	status = wait_for_end(command);
	results_fetch_free(fetch);
	return status ? status : report_results(command);
}

int command_results(struct session *session, int count, char **words)
{
	(void)words;
	return run(session, count, fetch_results);
}

/* --- rlmd status ------------------------------------------------------------------------- */

static int show_status(const struct store_command *command)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	if (command->config->json)
		json_write_line(command->status, out);
	else
		status_text_write(command->status, out);
	return command_print(text_in(out));
}

static void on_status(void *owner, json_t *status, const struct rlmd_error *err)
{
	struct store_command *command = owner;

	command->status = json_incref(status);
	end(command, err);
}

static int ask_status(struct store_command *command)
{
	const struct store_status_options options = {
		.store = command->config->store,
		.batch = command->config->batch,
		.warn = on_warning,
		.done = on_status,
		.owner = command,
	};
	struct rlmd_error err;
	struct store_status *asked = store_status_new(command->base, &options, &err);
	int status;

	if (!asked)
		return command_refuse(COMMAND_STATUS, &err);
	status = wait_for_end(command);
	store_status_free(asked);
	return status ? status : show_status(command);
}

int command_status(struct session *session, int count, char **words)
{
	(void)words;
	return run(session, count, ask_status);
}

/* --- rlmd merge -------------------------------------------------------------------------- */

static bool check_merge(const struct config *config, int count, struct rlmd_error *err)
{
	if (!config->output)
		return error_set(err, RLMD_ERROR_USAGE,
				 "merge needs -o OUT, the file that it writes");
	return count > 0 ||
	       error_set(err, RLMD_ERROR_USAGE, "merge needs files of results: name at least one");
}

int command_merge(struct session *session, int count, char **words)
{
	const struct config *config = &session->config;
	struct results_merge_summary summary;
	struct rlmd_error err;

	if (!check_merge(config, count, &err))
		return command_refuse(COMMAND_MERGE, &err);
	if (!results_merge(config->output, (const char *const *)words, (size_t)count, &summary,
			   &err)) {
		tell_error("%s", err.text);
		return rlmd_error_exit_status(err.kind);
	}
	if (!config->quiet)
		tell("%s: %" PRIu64 " of %" PRIu64 " lines; the others say the same again",
		     config->output, summary.lines, summary.lines + summary.again);
	return 0;
}
