#include "cli/batch_settings.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/cleanup.h"

#define SQLITE "sqlite:" /* in front of a path that is one of SQLite, whatever it looks like */

/* As GNU parallel has it: a few failures are no rate. */
enum { HALT_FAILURES = 3, HALT_MAX = 1000000, PERCENT = 100 };

/* --- the command line ------------------------------------------------------------------ */

/* Beside the results it is never taken for the name of a kind of store. */
static char *address_of_store(const struct config *config)
{
	return config->store ? xstrdup(config->store)
			     : xasprintf(SQLITE "%s.store", config->results);
}

/* By whatever names and links. */
static bool is_same_file(const char *path, const struct stat *file)
{
	struct stat st;

	return !stat(path, &st) && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* Results or a store in the place of jobs would cost the jobs, or the money. */
static bool check_apart(const struct config *config, const char *jobs, struct rlmd_error *err)
{
	auto_free char *address = address_of_store(config);
	const char *store = address;
	struct stat st;

	if (stat(jobs, &st))
		return true; /* whoever opens it says why */
	if (config->results && is_same_file(config->results, &st))
		return error_set(err, RLMD_ERROR_USAGE,
				 "-o %s is the jobs file itself: name another file for the results",
				 config->results);
	if (!strncmp(store, SQLITE, strlen(SQLITE)))
		store += strlen(SQLITE);
	return !is_same_file(store, &st) ||
	       error_set(err, RLMD_ERROR_USAGE,
			 "the store, %s, is the jobs file itself: name another one with --store",
			 store);
}

bool batch_settings_check_batch(const struct config *config, int count, char *const *words,
				struct rlmd_error *err)
{
	if (count != 1)
		return error_set(err, RLMD_ERROR_USAGE,
				 "a batch is of one jobs file, and %d were named", count);
	if (config->submit && (config->results || !config->store))
		return error_set(err, RLMD_ERROR_USAGE,
				 "--submit needs --store, and no -o: 'rlmd results' writes those");
	if (!config->results && !config->submit)
		return error_set(err, RLMD_ERROR_USAGE,
				 "-o says where the results are to be written, and is missing");
	if (config->results && !strcmp(config->results, "-"))
		return error_set(err, RLMD_ERROR_USAGE,
				 "the results go to a file that can be gone on with, not to "
				 "standard output");
	if (!strcmp(words[0], "-"))
		return error_set(err, RLMD_ERROR_USAGE,
				 "the jobs come from a file that can be read again, not from "
				 "standard input");
	return check_apart(config, words[0], err);
}

bool batch_settings_check_work(const struct config *config, int count, char *const *words,
			       struct rlmd_error *err)
{
	if (count)
		return error_set(err, RLMD_ERROR_USAGE,
				 "'%s' is one word too many: --batch names the batch to work on",
				 words[0]);
	if (config->root && config->allow_outside)
		return error_set(err, RLMD_ERROR_USAGE,
				 "--root and --allow-outside exclude each other");
	return config->store ||
	       error_set(err, RLMD_ERROR_USAGE, "--store says where the jobs are, and is missing");
}

/* --- settings that are words --------------------------------------------------------------- */

/* When it is enough: "10%" of the jobs, or 10 of them. */
static bool read_halt(const struct config *config, struct halt *ret, struct rlmd_error *err)
{
	const char *end = config->halt;
	int64_t number = 0;

	if (!end)
		return true;
	while (*end >= '0' && *end <= '9' && number <= HALT_MAX)
		number = 10 * number + *end++ - '0';
	if (!*end && number >= 1 && number <= HALT_MAX)
		*ret = (struct halt){.failures = number};
	else if (!strcmp(end, "%") && number >= 1 && number <= PERCENT)
		*ret = (struct halt){.failures = HALT_FAILURES, .percent = number};
	else
		return error_set(err, RLMD_ERROR_USAGE,
				 "--halt takes a number of failures, or a percentage of jobs from "
				 "1%% to 100%%, not '%s'",
				 config->halt);
	return true;
}

static bool check_default_tenant(const struct config *config, struct rlmd_error *err)
{
	if (!config->default_tenant || !config->tenants.count ||
	    tenants_find(&config->tenants, config->default_tenant, err))
		return true;
	err->kind = RLMD_ERROR_USAGE;
	return error_context(err, "--default-tenant");
}

bool batch_settings_read(const struct config *config, struct batch_settings *ret,
			 struct rlmd_error *err)
{
	*ret = (struct batch_settings){0};
	if (!check_default_tenant(config, err))
		return false;
	if (config->shard && !jobs_file_parse_shard(config->shard, &ret->shard, err))
		return error_context(err, "--shard");
	if (!read_halt(config, &ret->halt, err))
		return false;
	ret->store = address_of_store(config);
	return true;
}

void batch_settings_done(struct batch_settings *settings)
{
	free(settings->store);
}

struct rlmd_amount batch_settings_limit(const struct config *config)
{
	bool cost = config_given(config, OPTION_max_batch_cost);
	bool tokens = config_given(config, OPTION_max_batch_tokens);

	return (struct rlmd_amount){cost ? config->max_batch_cost : RLMD_UNLIMITED,
				    tokens ? config->max_batch_tokens : RLMD_UNLIMITED};
}

void batch_settings_set_parallel(struct config *config)
{
	if (config_given(config, OPTION_batch_parallel) ||
	    !config_given(config, OPTION_max_parallel))
		config->max_parallel = config->batch_parallel;
}
