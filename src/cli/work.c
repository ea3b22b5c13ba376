/*
 * rlmd work: the jobs that others have loaded into a store, on as many machines as there are.
 */
#include "cli/batch.h"
#include "cli/command.h"
#include "cli/session.h"
#include "cli/store_command.h"

static bool check_words(const struct config *config, int count, char *const *words,
			struct rlmd_error *err)
{
	if (count)
		return error_set(err, RLMD_ERROR_USAGE,
				 "'%s' is one word too many: --batch names the batch to work on",
				 words[0]);
	return config->store ||
	       error_set(err, RLMD_ERROR_USAGE, "--store says where the jobs are, and is missing");
}

static int start(struct session *session, int argc, char **argv)
{
	struct rlmd_error err;
	int first, status;

	if (!session_begin(session, COMMAND_WORK, argc, argv, &first, &status))
		return status;
	store_command_hide(argc, argv);
	if (!check_words(&session->config, argc - first, argv + first, &err))
		return command_refuse(COMMAND_WORK, &err);
	return batch_run(session, NULL);
}

int command_work(int argc, char **argv)
{
	struct session session = {0};
	int status = start(&session, argc, argv);

	session_done(&session);
	return status;
}
