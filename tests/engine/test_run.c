/* Runs, sub-calls and sub-runs against fakes that answer from the event loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/json.h"
#include "engine/stage.h"
#include "fake/outside.h"

/* Three levels, of which each run but the deepest asks for two answers and two sub-runs. */
static const char *deep(const struct llm_request *request)
{
	if (request->kind != LLM_TURN)
		return "fine";
	if (request->depth < 2 && !request->turn)
		return "```repl\nask\n```";
	return request->depth ? "```repl\nfinal\n```" : "FINAL(the end)";
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

/* A worker may lie: what is no plain name is not told. */
static void test_a_missing_module(void **state)
{
	static const char *const names[] = {
		"_a1",
		"pandas",
		"",
		"a b",
		"a.b",
		"\x1b[31mx",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		NULL,
	};
	struct fixture fixture;
	const char *text;

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		fake_model = recursing;
		fake_missing = names[i];
		begin(&fixture, &usual);
		drive(&fixture);
		text = json_string_value(
			json_array_get(json_object_get(fixture.result, "warnings"), 0));
		assert_int_equal(i < 2, text != NULL);
		assert_true(!text || strstr(text, names[i]));
		end(&fixture);
	}
	fake_missing = NULL;
}

/* The sweeps go over this: looks at an input, sub-runs side by side and one at a time, calls that
 * wait for others. */
static const struct sweep {
	const char *(*model)(const struct llm_request *);
	int max_depth, max_workers;
	int64_t tokens;
	const char *input;
} sweeps[] = {{recursing, 2, 8, 1000000, "a text"},
	      {deep, 3, 1, 1000000, "a text"},
	      {recursing, 2, 8, 1000000},
	      {recursing, 2, 1, 1000000},
	      {deep, 3, 1, 1000000},
	      {deep, 3, 2, 1000000},
	      {deep, 3, 8, 1000000},
	      {recursing, 2, 1, SMALL_PURSE}};

static struct stage_config config_of(const struct sweep *sweep)
{
	struct stage_config config = usual;

	fake_model = sweep->model;
	stage_input = sweep->input;
	config.limits.max_depth = sweep->max_depth;
	stage_workers = (size_t)sweep->max_workers;
	config.limits.tokens = sweep->tokens;
	return config;
}

#define FOR_EACH_SWEEP(sweep)                                                                      \
	for (const struct sweep *sweep = sweeps; sweep < sweeps + sizeof sweeps / sizeof *sweeps;  \
	     sweep++)

/* C4: cancelled after any number of events, a tree of runs leaves nothing (run it with ASan). */
static void test_cancel_sweep(void **state)
{
	struct fixture fixture;

	(void)state;
	FOR_EACH_SWEEP(sweep)
	{
		struct stage_config config = config_of(sweep);
		int n = 0;

		do {
			begin(&fixture, &config);
			for (int i = 0; i < n && !fixture.results; i++)
				event_base_loop(fixture.base, EVLOOP_NONBLOCK);
			n++;
			end(&fixture);
		} while (!fixture.results);
		assert_true(n > 10);
	}
}

/* Interrupted after any number of events, a run ends once, forced or already done; and whatever was
 * in flight below it is closed when it is. */
static void test_interrupt_sweep(void **state)
{
	struct fixture fixture;

	(void)state;
	FOR_EACH_SWEEP(sweep)
	{
		struct stage_config config = config_of(sweep);
		bool finished = false;

		for (int n = 0; !finished; n++) {
			begin(&fixture, &config);
			for (int i = 0; i < n; i++)
				event_base_loop(fixture.base, EVLOOP_NONBLOCK);
			finished = fixture.results;
			rlmd_job_interrupt(fixture.job);
			while (!fixture.job->yields && !fixture.results)
				event_base_loop(fixture.base, EVLOOP_NONBLOCK);
			assert_true(fake_calls <= 1); /* for the forced answer */
			assert_true(fake_workers <= 1);
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
}

/* A worker that dies at any event ends its block, not the run. */
static void test_death_sweep(void **state)
{
	struct fixture fixture;

	(void)state;
	FOR_EACH_SWEEP(sweep)
	{
		struct stage_config config = config_of(sweep);
		size_t all;

		begin(&fixture, &config);
		drive(&fixture);
		all = fake_events;
		end(&fixture);
		for (size_t death = 1; death <= all; death++) {
			begin(&fixture, &config);
			fake_death = death;
			drive(&fixture);
			assert_int_equal(fixture.results, 1);
			end(&fixture);
		}
	}
}

/* ENG-7, ENG-20: the iterations are spent, and an answer is forced with the warning's exact text.
 */
static void test_forced(void **state)
{
	struct fixture fixture;
	struct stage_config config = usual;
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

static size_t late_queries;

static const char *calling_late(const struct llm_request *request)
{
	late_queries += request->kind == LLM_QUERY;
	return request->kind == LLM_TURN ? "```repl\nlate\n```" : "forced words";
}

/* The reserve for the forced answer is for that alone: code that calls while it is asked for has
 * its worker killed, and no model is asked. */
static void test_a_call_that_comes_too_late(void **state)
{
	struct stage_config config = usual;
	struct fixture fixture;

	(void)state;
	late_queries = 0;
	fake_model = calling_late;
	config.limits.max_iterations = 1;
	begin(&fixture, &config);
	drive(&fixture);
	assert_int_equal(fixture.results, 1);
	assert_true(text_equal(output(&fixture), "forced words"));
	assert_int_equal(late_queries, 0);
	assert_int_equal(fake_workers, 0);
	end(&fixture);
}

static size_t too_long;

static const char *never_short_enough(const struct llm_request *request)
{
	if (request->kind != LLM_TURN)
		return "forced words";
	if (request->turn < 4)
		return "```repl\nprint\n```";
	too_long++;
	return NULL;
}

/* A request that is too long for its model is made smaller twice, and not for ever. */
static void test_too_long(void **state)
{
	struct fixture fixture;

	(void)state;
	too_long = 0;
	fake_model = never_short_enough;
	fake_failure = RLMD_ERROR_CONTEXT_OVERFLOW;
	begin(&fixture, &usual);
	drive(&fixture);
	fake_failure = RLMD_ERROR_OVERLOADED;
	assert_int_equal(fixture.results, 1);
	assert_int_equal(too_long, 3);
	end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_a_missing_module),
		cmocka_unit_test(test_cancel_sweep),
		cmocka_unit_test(test_interrupt_sweep),
		cmocka_unit_test(test_death_sweep),
		cmocka_unit_test(test_forced),
		cmocka_unit_test(test_only_words),
		cmocka_unit_test(test_provider_failure),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_a_call_that_comes_too_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
