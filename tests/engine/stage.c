#include "engine/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/money.h"
#include "fake/outside.h"

const struct stage_config usual = {
	.limits = {.cost = MONEY_DOLLAR,
		   .tokens = 1000000,
		   .time_ms = 60000,
		   .max_depth = 2,
		   .max_iterations = 10,
		   .calls = BUDGET_UNLIMITED,
		   .subruns = BUDGET_UNLIMITED},
	.block_timeout_ms = 1000,
	.max_output = 1000,
	.max_parallel = 2,
	.grace_ms = 1000,
};

static int64_t given(int64_t value)
{
	return value ? value : RLMD_NOTHING;
}

struct rlmd_job_options stage_options(const struct stage_config *config, struct rlmd_limits *limits)
{
	*limits = config->limits;
	limits->size = sizeof *limits;
	limits->cost = given(limits->cost);
	limits->max_depth = given(limits->max_depth);
	limits->subruns = given(limits->subruns);
	return (struct rlmd_job_options){
		.size = sizeof(struct rlmd_job_options),
		.sandbox = fake_outside_sandbox,
		.limits = limits,
		.block_timeout_ms = config->block_timeout_ms,
		.max_output = config->max_output,
		.max_parallel = config->max_parallel,
		.downgrade = given(config->downgrade),
		.grace_ms = given(config->grace_ms),
		.strict = config->strict,
		.account = config->account,
	};
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	struct fixture *fixture = owner;

	(void)job;
	fixture->results++;
	fixture->result = json_incref(result->object);
}

const struct rlmd_function *stage_function;
const char *stage_input;
size_t stage_workers = STAGE_WORKERS;

void begin(struct fixture *fixture, const struct stage_config *config)
{
	struct rlmd_engine_options options = {.size = sizeof options, .max_workers = stage_workers};
	const struct rlmd_hooks hooks = {.size = sizeof hooks, .end = on_end, .owner = fixture};
	struct rlmd_limits limits;
	struct rlmd_job_options job = stage_options(config, &limits);

	*fixture = (struct fixture){.base = event_base_new()};
	job.functions = stage_function;
	job.function_count = stage_function != NULL;
	fake_events = fake_death = fake_calls_most = 0;
	fake_workers_most = fake_computing_most = 0;
	fake_told[0] = '\0';
	if (stage_input)
		fixture->context = rlmd_context_from_text(NULL, text_of(stage_input), NULL);
	options.base = fixture->base;
	job.task = text_of("the task");
	job.context = fixture->context;
	job.hooks = &hooks;
	fixture->engine = rlmd_engine_new(&options, NULL);
	fake_provider(fixture->engine);
	fixture->job = rlmd_job_start(fixture->engine, &job, NULL);
	assert_non_null(fixture->job);
}

void end(struct fixture *fixture)
{
	rlmd_engine_free(fixture->engine);
	event_base_free(fixture->base);
	json_decref(fixture->result);
	rlmd_context_unref(fixture->context);
	assert_int_equal(fake_calls, 0);
	assert_int_equal(fake_workers, 0);
}

void drive(struct fixture *fixture)
{
	for (int i = 0; i < 100000 && !fixture->results; i++)
		event_base_loop(fixture->base, EVLOOP_NONBLOCK);
}

const char *recursing(const struct llm_request *request)
{
	if (request->kind == LLM_FORCED)
		return "forced words";
	if (request->kind != LLM_TURN)
		return "fine";
	if (request->depth)
		return "```repl\nfinal\n```";
	return request->turn ? "FINAL(the end)" : "```repl\nask\n```\n```python\nprint\n```";
}

struct rlmd_text output(const struct fixture *fixture)
{
	return json_get_text(fixture->result, "output");
}

int64_t used(const struct fixture *fixture, const char *key)
{
	return json_get_integer(json_object_get(fixture->result, "usage"), key, -1);
}
