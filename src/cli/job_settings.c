#include "cli/job_settings.h"

/* Zero means the default to a job. */
static int64_t given(int64_t value)
{
	return value ? value : RLMD_NOTHING;
}

#define SET_JOB(member)      options.member = *value;
#define SET_JOB_ZERO(member) options.member = given(*value);
#define SET_NONE             (void)value;

struct rlmd_job_options job_settings_options(const struct config *config)
{
	struct rlmd_job_options options = {
		.size = sizeof options,
		.max_parallel = config_given(config, OPTION_max_parallel) ? config->max_parallel
									  : 0,
		.with_temperature = config_given(config, OPTION_temperature),
		.stops = (const char *const *)config->stop.items,
	};

#define GROUP(heading)
#define OPTION(field, type, scope, commands, letter, name, argument, standard, min, max, shown,    \
	       target, help)                                                                       \
	{                                                                                          \
		const __typeof__(config->field) *value = &config->field;                           \
		SET_##target                                                                       \
	}
#include "cli/options.def"
#undef OPTION
#undef GROUP
	return options;
}

struct rlmd_limits job_settings_limits(const struct config *config, int64_t left_ms)
{
	return (struct rlmd_limits){
		.size = sizeof(struct rlmd_limits),
		.cost = config_given(config, OPTION_max_cost) ? given(config->max_cost) : 0,
		.tokens = config->max_tokens,
		.time_ms = left_ms,
		.max_depth = given(config->max_depth),
		.max_iterations = config->max_iterations,
		.calls = config->max_calls,
		.subruns = given(config->max_subruns),
	};
}

struct rlmd_sandbox_options job_settings_sandbox(const struct config *config)
{
	return (struct rlmd_sandbox_options){
		.size = sizeof(struct rlmd_sandbox_options),
		.python = config->python,
		.preload = (const char *const *)config->preload.items,
		.worker_memory = (size_t)config->worker_memory,
		.first_uid = (uint32_t)config->first_uid,
	};
}

struct rlmd_sandbox_options job_settings_tenant(const struct config *config,
						const struct tenancy_needs *needs)
{
	struct rlmd_sandbox_options options = job_settings_sandbox(config);
	uint32_t first, count;

	rlmd_sandbox_uids(options.first_uid, &first, &count);
	if (needs->uid_range)
		options.first_uid = first + needs->uid_range * count;
	if (needs->worker_memory)
		options.worker_memory = (size_t)needs->worker_memory;
	options.pool_parts = needs->parts;
	options.require = needs->require;
	return options;
}

struct rlmd_context_options job_settings_context(const struct config *config, int64_t left_ms)
{
	return (struct rlmd_context_options){
		.size = sizeof(struct rlmd_context_options),
		.timeout_ms = left_ms,
		.include = (const char *const *)config->include.items,
		.include_count = config->include.count,
		.exclude = (const char *const *)config->exclude.items,
		.exclude_count = config->exclude.count,
		.max_file_size = config->max_file_size,
		.max_size = config->max_context,
		.diff = config->diff,
		.untracked = config->untracked,
		.recurse_submodules = config->recurse_submodules,
		.allow_alternates = config->allow_alternates,
		.allow_secrets = config->allow_secrets,
	};
}

bool job_settings_check_review(const struct config *config, const char *rules,
			       struct rlmd_error *err)
{
	if (rules && config->add_rules)
		return error_set(err, RLMD_ERROR_USAGE,
				 "--rules and --add-rules: rules of one's own stand in place of "
				 "the usual ones, or beside them");
	return !(config->deep && config->quick) ||
	       error_set(err, RLMD_ERROR_USAGE,
			 "--deep and --quick: a review is one of them, or neither");
}

struct rlmd_review_options job_settings_review(const struct config *config, const char *rules)
{
	return (struct rlmd_review_options){
		.size = sizeof(struct rlmd_review_options),
		.prompt = config->prompt,
		.rules = rules ? rules : config->add_rules,
		.usual_rules = !rules,
		.baseline = config->baseline,
		.fail_on = config->fail_on,
		.only_changed = config->only_changed_lines,
		.fail_on_unanchored = config->fail_on_unanchored,
		.min_confidence = config->min_confidence,
		.max_findings = (size_t)config->max_findings,
		.category = config->category,
		.reading = config->quick  ? RLMD_REVIEW_NO_READING
			   : config->deep ? RLMD_REVIEW_DEEP_READING
					  : RLMD_REVIEW_FIRST_READING,
	};
}
