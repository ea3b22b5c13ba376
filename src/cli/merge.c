/*
 * rlmd merge: the results of several shards of a batch as one file.
 */
#include <inttypes.h>

#include "batch/results_merge.h"
#include "cli/command.h"
#include "cli/config.h"
#include "cli/tell.h"

static bool check(const struct config *config, int count, struct rlmd_error *err)
{
	if (!config->output)
		return error_set(err, RLMD_ERROR_USAGE,
				 "merge needs -o OUT, the file that it writes");
	return count > 0 ||
	       error_set(err, RLMD_ERROR_USAGE, "merge needs files of results: name at least one");
}

/* No settings are read: they make no difference here. */
static int run(struct config *config, int argc, char **argv)
{
	struct results_merge_summary summary;
	struct rlmd_error err;
	int first, status;

	if (!command_begin(COMMAND_MERGE, config, argc, argv, &first, &status))
		return status;
	if (!check(config, argc - first, &err))
		return command_refuse(COMMAND_MERGE, &err);
	if (!results_merge(config->output, (const char *const *)argv + first,
			   (size_t)(argc - first), &summary, &err)) {
		tell_error("%s", err.text);
		return rlmd_error_exit_status(err.kind);
	}
	if (!config->quiet)
		tell("%s: %" PRIu64 " of %" PRIu64 " lines; the others say the same again",
		     config->output, summary.lines, summary.lines + summary.again);
	return 0;
}

int command_merge(int argc, char **argv)
{
	struct config config;
	int status = run(&config, argc, argv);

	config_done(&config);
	return status;
}
