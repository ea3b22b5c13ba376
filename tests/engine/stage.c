#include "engine/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/money.h"
#include "fake/outside.h"

const struct job_config usual = {
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

static void on_end(void *owner, const struct rlmd_result *result)
{
	struct fixture *fixture = owner;

	fixture->results++;
	fixture->result = json_incref(result->object);
}

const char *stage_input;
size_t stage_workers = STAGE_WORKERS;

void begin(struct fixture *fixture, const struct job_config *config)
{
	struct engine_options options = {.max_workers = stage_workers,
					 .max_calls = (size_t)config->max_parallel};
	struct job_options job = {
		.config = *config,
		.task = text_of("the task"),
		.context = &fixture->context,
		.end = on_end,
		.owner = fixture,
	};

	*fixture = (struct fixture){.base = event_base_new()};
	fake_events = fake_death = fake_calls_most = 0;
	fake_workers_most = fake_computing_most = 0;
	fake_told[0] = '\0';
	if (stage_input)
		assert_true(context_from_text(text_of(stage_input), &fixture->context, NULL));
	options.base = fixture->base;
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
	context_done(&fixture->context);
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
