/*
 * rlmd results: what became of a batch's jobs, from the store into a file.
 */
#include <event2/buffer.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "batch/results_fetch.h"
#include "batch/summary.h"
#include "cli/command.h"
#include "cli/store_command.h"
#include "cli/tell.h"

struct results_command {
	struct store_command store;
	struct summary summary;
};

static void on_warning(void *owner, const char *text)
{
	(void)owner;
	tell_warning("%s", text);
}

static void on_end(void *owner, const struct summary *summary, const struct rlmd_error *err)
{
	struct results_command *command = owner;

	command->summary = *summary;
	store_command_end(&command->store, err);
}

static bool check(const struct config *config, struct rlmd_error *err)
{
	return (config->results && strcmp(config->results, "-") != 0) ||
	       error_set(err, RLMD_ERROR_USAGE,
			 "-o names the file of results, which may be one to go on with, and is "
			 "missing");
}

static int report(const struct results_command *command)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	auto_free char *text = NULL;

	summary_write(&command->summary, out);
	text = text_drain(out, NULL);
	if (!command->store.config.quiet)
		tell("%s: %s", command->store.config.results, text);
	return summary_exit_status(&command->summary);
}

static int run(struct results_command *command, int argc, char **argv)
{
	const struct config *config = &command->store.config;
	struct results_fetch_options options = {
		.warn = on_warning, .end = on_end, .owner = command};
	struct results_fetch *fetch;
	struct rlmd_error err;
	int status;

	if (!store_command_begin(&command->store, COMMAND_RESULTS, argc, argv, &status))
		return status;
	if (!check(config, &err))
		return command_refuse(COMMAND_RESULTS, &err);
	options.store = config->store;
	options.batch = config->batch;
	options.path = config->results;
	options.sort = config->sort;
	fetch = results_fetch_new(command->store.base, &options, &err);
	if (!fetch)
		return command_refuse(COMMAND_RESULTS, &err);
	status = store_command_wait(&command->store);
	results_fetch_free(fetch);
	return status ? status : report(command);
}

int command_results(int argc, char **argv)
{
	struct results_command command = {0};
	int status = run(&command, argc, argv);

	store_command_done(&command.store);
	return status;
}
