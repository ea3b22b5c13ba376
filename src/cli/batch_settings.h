/*
 * cli/batch_settings.h - the settings of rlmd batch and rlmd work: checked, and as a runner takes
 * them.
 */
#pragma once

#include "base/error.h"
#include "batch/dispatcher.h"
#include "batch/jobs_file.h"
#include "cli/config.h"

/* Whether the words and the settings of the command line agree; RLMD_ERROR_USAGE. Neither results
 * nor a store may be the jobs file itself, by whatever names and links. */
bool batch_settings_check_batch(const struct config *, int count, char *const *words,
				struct rlmd_error *);
bool batch_settings_check_work(const struct config *, int count, char *const *words,
			       struct rlmd_error *);

struct batch_settings {
	char *store; /* owned: its address; beside the results where none is named */
	struct halt halt;
	struct jobs_file_shard shard;
};

/* RLMD_ERROR_USAGE: --halt, --shard or --default-tenant make no sense. */
bool batch_settings_read(const struct config *, struct batch_settings *ret, struct rlmd_error *);
void batch_settings_done(struct batch_settings *); /* of a zeroed one too */

/* For all jobs together. */
struct rlmd_amount batch_settings_limit(const struct config *);

/* A batch has a number of calls at once of its own, unless a file or the environment says one for
 * all commands. */
void batch_settings_set_parallel(struct config *);
