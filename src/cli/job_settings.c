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
