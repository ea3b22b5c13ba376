/* Runs, sub-calls and sub-runs against fakes that answer from the event loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <event2/event.h>
#include <string.h>

#include "base/json.h"
#include "base/money.h"
#include "engine/engine.h"
#include "fake/outside.h"

struct fixture {
	struct event_base *base;
	struct engine *engine;
	struct context context;
	json_t *result;
	int results;
};

static const struct engine_config usual = {
	.limits = {.cost = MONEY_DOLLAR,
		   .tokens = 1000000,
		   .time_ms = 60000,
		   .max_depth = 2,
		   .max_iterations = 10},
	.block_timeout_ms = 1000,
	.max_output = 1000,
	.max_parallel = 2,
	.grace_ms = 1000,
};

static void on_done(void *owner, const struct engine_result *result)
{
	struct fixture *fixture = owner;

	fixture->results++;
	fixture->result = json_incref(result->object);
}

static void begin(struct fixture *fixture, const struct engine_config *config)
{
	*fixture = (struct fixture){.base = event_base_new()};
	fake_events = fake_death = 0;
	fixture->engine = engine_start(fixture->base, NULL, (struct llm *)fixture->base, config,
				       text_of("the task"), &fixture->context, NULL, on_done,
				       fixture);
}

static void end(struct fixture *fixture)
{
	engine_free(fixture->engine);
	event_base_free(fixture->base);
	json_decref(fixture->result);
	assert_int_equal(fake_calls, 0);
	assert_int_equal(fake_workers, 0);
}

/* Turns until the result, but not longer than a while. */
static void drive(struct fixture *fixture)
{
	for (int i = 0; i < 10000 && !fixture->results; i++)
		event_base_loop(fixture->base, EVLOOP_NONBLOCK);
}

static const char *recursing(const struct llm_request *request)
{
	if (request->kind == LLM_FORCED)
		return "forced words";
	if (request->kind != LLM_TURN)
		return "fine";
	if (request->depth)
		return "```repl\nfinal\n```";
	return request->turn ? "FINAL(the end)" : "```repl\nask\n```\n```python\nprint\n```";
}

static const char *endless(const struct llm_request *request)
{
	return request->kind == LLM_FORCED ? "FINAL(forced words)" : "```repl\nprint\n```";
}

static const char *wordy(const struct llm_request *request)
{
	return request->kind == LLM_FORCED ? "my answer" : "I am thinking about it.";
}

static const char *failing(const struct llm_request *request)
{
	return request->kind == LLM_TURN && !request->depth && !request->turn
		       ? "```repl\nask\n```\nFINAL_VAR(x)"
		       : NULL;
}

static struct text output(const struct fixture *fixture)
{
	return json_get_text(fixture->result, "output");
}

static int64_t used(const struct fixture *fixture, const char *key)
{
	return json_get_integer(json_object_get(fixture->result, "usage"), key, -1);
}

/* ENG-11, ENG-12, ENG-17, LIB-6: calls and sub-runs are served, and counted for the whole tree. */
static void test_recursion(void **state)
{
	struct fixture fixture;
	json_t *trace;

	(void)state;
	fake_model = recursing;
	begin(&fixture, &usual);
	drive(&fixture);
	assert_int_equal(fixture.results, 1);
	assert_true(text_equal(output(&fixture), "the end"));
	assert_int_equal(used(&fixture, "iterations"), 4);
	assert_int_equal(used(&fixture, "subcalls"), 2);
	assert_int_equal(used(&fixture, "llmCalls"), 6);
	assert_int_equal(used(&fixture, "tokens"), 6 * 15);
	assert_int_equal(used(&fixture, "maxDepthReached"), 1);
	trace = json_object_get(fixture.result, "trace");
	assert_int_equal(json_array_size(json_object_get(trace, "subcalls")), 2);
	assert_int_equal(json_array_size(json_object_get(trace, "llmCalls")), 2);
	end(&fixture);
}

/* C4: cancelled after any number of events, a tree of runs leaves nothing (run it with ASan). */
static void test_cancel_sweep(void **state)
{
	struct fixture fixture;
	int n = 0;

	(void)state;
	fake_model = recursing;
	do {
		begin(&fixture, &usual);
		for (int i = 0; i < n && !fixture.results; i++)
			event_base_loop(fixture.base, EVLOOP_NONBLOCK);
		n++;
		end(&fixture);
	} while (!fixture.results);
	assert_true(n > 10);
}

/* Interrupted after any number of events, a run ends once, forced or already done. */
static void test_interrupt_sweep(void **state)
{
	struct fixture fixture;
	bool finished = false;

	(void)state;
	fake_model = recursing;
	for (int n = 0; !finished; n++) {
		begin(&fixture, &usual);
		for (int i = 0; i < n; i++)
			event_base_loop(fixture.base, EVLOOP_NONBLOCK);
		finished = fixture.results;
		engine_interrupt(fixture.engine);
		drive(&fixture);
		assert_int_equal(fixture.results, 1);
		if (!finished) {
			const char *stop = json_string_value(
				json_object_get(fixture.result, "stopReason"));

			assert_true(!strcmp(stop, "interrupted") || !strcmp(stop, "final"));
		}
		end(&fixture);
	}
}

/* A worker that dies at any event ends its block, not the run. */
static void test_death_sweep(void **state)
{
	struct fixture fixture;
	size_t all;

	(void)state;
	fake_model = recursing;
	begin(&fixture, &usual);
	drive(&fixture);
	all = fake_events;
	end(&fixture);
	for (size_t death = 1; death <= all; death++) {
		begin(&fixture, &usual);
		fake_death = death;
		drive(&fixture);
		assert_int_equal(fixture.results, 1);
		end(&fixture);
	}
}

/* ENG-7, ENG-20: the iterations are spent, and an answer is forced with the warning's exact text.
 */
static void test_forced(void **state)
{
	struct fixture fixture;
	struct engine_config config = usual;
	json_t *warnings;

	(void)state;
	fake_model = endless;
	config.limits.max_iterations = 3;
	begin(&fixture, &config);
	drive(&fixture);
	assert_true(text_equal(output(&fixture), "forced words"));
	assert_int_equal(used(&fixture, "iterations"), 3);
	assert_string_equal(json_string_value(json_object_get(fixture.result, "stopReason")),
			    "max_iterations");
	warnings = json_object_get(fixture.result, "warnings");
	assert_string_equal(json_string_value(json_array_get(warnings, 0)),
			    "Budget exhausted, answer was forced");
	assert_string_equal(json_string_value(json_array_get(warnings, 1)),
			    "Max iterations reached");
	end(&fixture);
}

/* A model that only talks is told what to do, and asked for its answer after three turns. */
static void test_only_words(void **state)
{
	struct fixture fixture;

	(void)state;
	fake_model = wordy;
	begin(&fixture, &usual);
	drive(&fixture);
	assert_true(text_equal(output(&fixture), "my answer"));
	assert_int_equal(used(&fixture, "iterations"), 3);
	end(&fixture);
}

/* A provider that fails fails the slots of a batch, and the root only at its own turn. */
static void test_provider_failure(void **state)
{
	struct fixture fixture;

	(void)state;
	fake_model = failing;
	begin(&fixture, &usual);
	drive(&fixture);
	/* FINAL_VAR of the same response finds its variable: the failed slots did not end the run.
	 */
	assert_true(text_equal(output(&fixture), "a value"));
	end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recursion),        cmocka_unit_test(test_cancel_sweep),
		cmocka_unit_test(test_interrupt_sweep),  cmocka_unit_test(test_death_sweep),
		cmocka_unit_test(test_forced),           cmocka_unit_test(test_only_words),
		cmocka_unit_test(test_provider_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
