/* Sub-runs: their permits, what stands in for them, and the caps on them and on calls. */
#include <rlmd/function.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/json.h"
#include "effort.h"
#include "engine/run_private.h"
#include "engine/stage.h"
#include "fake/outside.h"

static int levels;

/* `levels` levels, each run of all but the deepest with eight sub-runs. */
static const char *fanning(const struct llm_request *request)
{
	if (request->kind != LLM_TURN)
		return "fine";
	if (request->depth < levels - 1 && !request->turn)
		return "```repl\nfan\n```";
	return request->depth ? "```repl\nfinal\n```" : "FINAL(the end)";
}

static struct stage_config fanning_config(int depth, int workers)
{
	struct stage_config config = usual;

	fake_model = fanning;
	levels = depth;
	config.limits.cost = config.limits.tokens = BUDGET_UNLIMITED;
	config.limits.time_ms = 3600000; /* never scarce, however slow the machine is */
	config.limits.max_iterations = 1000;
	config.limits.max_depth = depth;
	config.max_parallel = 8;
	stage_workers = (size_t)workers;
	return config;
}

/* Whatever its shape, a tree of runs ends with any number of permits. No more compute than may, and
 * those that wait keep their workers: at most 1 + (max_workers + max_calls) * (max_depth - 1). */
static void test_permits(void **state)
{
	struct fixture fixture;

	(void)state;
	for (int workers = 1; workers <= 4; workers++) {
		struct stage_config config = fanning_config(4, workers);

		begin(&fixture, &config);
		drive(&fixture);
		assert_int_equal(fixture.results, 1);
		assert_true(text_equal(output(&fixture), "the end"));
		assert_int_equal(used(&fixture, "subcalls"), 8 + 64 + 512);
		assert_in_range(fake_computing_most, 1, workers);
		assert_in_range(fake_workers_most, workers + 2, 1 + (workers + 8) * 3);
		end(&fixture);
	}
}

static size_t queries;

static const char *asking(const struct llm_request *request)
{
	if (request->kind != LLM_TURN) {
		queries++;
		return "fine";
	}
	return request->turn ? "FINAL(the end)" : "```repl\nask\n```";
}

/* Which may be megabytes: from the model's connection to the worker's pipe. */
static void test_answers_are_not_copied(void **state)
{
	struct stage_config config = usual;
	struct fixture fixture;

	(void)state;
	fake_model = asking;
	queries = fake_taken = 0;
	begin(&fixture, &config);
	drive(&fixture);
	assert_int_equal(fixture.results, 1);
	assert_in_range(queries, 2, SIZE_MAX);
	assert_int_equal(fake_taken, queries);
	end(&fixture);
}

/* The bound holds whichever worker dies, and when. */
static void test_permits_of_the_dead(void **state)
{
	struct stage_config config = fanning_config(3, 2);
	struct fixture fixture;
	size_t all;

	(void)state;
	begin(&fixture, &config);
	drive(&fixture);
	all = fake_events;
	end(&fixture);
	for (size_t death = 1; death <= all; death += effort(1, 7)) {
		begin(&fixture, &config);
		fake_death = death;
		drive(&fixture);
		assert_int_equal(fixture.results, 1);
		assert_true(fake_workers_most <= 1 + (2 + 8) * 2);
		assert_true(fake_computing_most <= 2);
		end(&fixture);
	}
}

static struct fixture *watched;

static const char *short_of_room(const struct llm_request *request)
{
	struct caller *caller = watched->job->task.root ? &watched->job->task.root->caller : NULL;

	if (request->kind != LLM_TURN)
		return "fine";
	if (request->depth)
		return "```repl\nfinal\n```";
	assert_non_null(caller);
	assert_int_equal(caller->answers, 0);
	caller->answers_max = 5;
	return request->turn ? "FINAL(the end)" : "```repl\nask\n```";
}

/* Answers are in memory until all of a call are there: beyond so many bytes they fail, and what a
 * call had is there for the next one. */
static void test_room_for_answers(void **state)
{
	struct fixture fixture;

	(void)state;
	watched = &fixture;
	fake_model = short_of_room;
	begin(&fixture, &usual);
	drive(&fixture);
	assert_true(text_equal(output(&fixture), "the end"));
	assert_non_null(strstr(fake_told, "!the answers that are waited for may have"));
	end(&fixture);
}

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;

	while ((text = strstr(text, part))) {
		text += strlen(part);
		count++;
	}
	return count;
}

static size_t warnings_with(const struct fixture *fixture, const char *part)
{
	const json_t *warning;
	size_t i, count = 0;

	json_array_foreach (json_object_get(fixture->result, "warnings"), i, warning)
		count += strstr(json_string_value(warning), part) != NULL;
	return count;
}

/* Calls of the trace that say why they stand in for a sub-run. */
static size_t calls_with(const struct fixture *fixture, const char *kind, const char *reason)
{
	const json_t *trace = json_object_get(fixture->result, "trace");
	const json_t *call;
	size_t i, count = 0;

	json_array_foreach (json_object_get(trace, "llmCalls"), i, call)
		count += text_equal(json_get_text(call, "kind"), kind) &&
			 text_equal(json_get_text(call, "reason"), reason);
	return count;
}

/* ENG-13, ENG-14: whatever stands in for a sub-run is told to the code, the trace and the warnings,
 * with its reason, and there once. */
static void test_fallbacks(void **state)
{
	static const struct {
		int max_depth, downgrade;
		int64_t subruns;
		size_t replaced;
		const char *told, *kind, *reason;
	} cases[] = {
		{2, 0, 3, 5,
		 "fine[no sub-RLM was started (Max sub-runs reached), answered directly]|",
		 "direct", "Max sub-runs reached"},
		{1, 0, 9, 8, "fine[no sub-RLM was started (Max depth reached), answered directly]|",
		 "direct", "Max depth reached"},
		{2, 100, 9, 8, "fine[downgraded to llm_query (less than 100 % of tokens left)]|",
		 "llm_query", "less than 100 % of tokens left"},
		{1, 100, 9, 8,
		 "fine[no sub-RLM was started (Max depth reached), answered directly]|", "direct",
		 "Max depth reached"},
	};
	struct fixture fixture;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct stage_config config = fanning_config(2, 1);

		config.limits.max_depth = cases[i].max_depth;
		config.limits.subruns = cases[i].subruns;
		config.limits.tokens = 1000000;
		config.downgrade = cases[i].downgrade;
		begin(&fixture, &config);
		drive(&fixture);
		assert_int_equal(count_of(fake_told, cases[i].told), cases[i].replaced);
		assert_int_equal(count_of(fake_told, "from code|"), 8 - cases[i].replaced);
		assert_int_equal(used(&fixture, "subcalls"), 8 - cases[i].replaced);
		assert_int_equal(warnings_with(&fixture, cases[i].reason), 1);
		assert_int_equal(calls_with(&fixture, cases[i].kind, cases[i].reason),
				 cases[i].replaced);
		end(&fixture);
	}
}

/* A reason far below is told at the root too. */
static void test_fallback_below(void **state)
{
	struct stage_config config = fanning_config(3, 1);
	struct fixture fixture;

	(void)state;
	config.limits.max_depth = 2;
	begin(&fixture, &config);
	drive(&fixture);
	assert_int_equal(used(&fixture, "subcalls"), 8);
	assert_int_equal(warnings_with(&fixture, "Max depth reached"), 1);
	end(&fixture);
}

/* Calls that the budget does not afford at once, it affords one after the other. */
static void test_small_budget(void **state)
{
	struct stage_config config = usual;
	struct fixture fixture;

	(void)state;
	fake_model = recursing;
	stage_workers = STAGE_WORKERS;
	config.limits.tokens = SMALL_PURSE;
	config.max_parallel = 8;
	begin(&fixture, &config);
	drive(&fixture);
	assert_true(text_equal(output(&fixture), "the end"));
	assert_null(strchr(fake_told, '!'));
	assert_true(fake_calls_most < 4);
	assert_int_equal(used(&fixture, "llmCalls"), 2 + 4);
	end(&fixture);
}

/* The cap on calls counts them all; what is beyond it fails in its slot, but the answer that is
 * forced is exempt, that of a sub-run too. */
static void test_calls_are_capped(void **state)
{
	struct stage_config config = usual;
	struct fixture fixture;

	(void)state;
	fake_model = recursing;
	stage_workers = STAGE_WORKERS;
	config.limits.calls = 4;
	begin(&fixture, &config);
	drive(&fixture);
	assert_true(text_equal(output(&fixture), "forced words"));
	assert_string_equal(json_string_value(json_object_get(fixture.result, "stopReason")),
			    "max_calls");
	assert_int_equal(used(&fixture, "llmCalls"), 4 + 2);
	assert_int_equal(warnings_with(&fixture, "Max calls reached"), 1);
	end(&fixture);
}

/* --- functions of the host's ---------------------------------------------------------- */

static bool told_of_it;
static int looked_up;

static const char *looking_up(const struct llm_request *request)
{
	if (text_find(request->messages[0].text, "- lookup(key: string): Looks a customer up."))
		told_of_it = true;
	return request->turn ? "FINAL(the end)" : "```repl\nfunction\n```";
}

static void look_up(void *owner, struct rlmd_function_call *call, struct rlmd_text arguments)
{
	looked_up++;
	if (owner && text_equal(arguments, "{\"key\":\"x\"}"))
		rlmd_function_reply(call, rlmd_text_of(owner));
	else
		rlmd_function_fail(call, "it is closed");
}

static void run_with_function(const char *answer, int64_t calls)
{
	const struct rlmd_function function = {
		.size = sizeof function,
		.name = "lookup",
		.doc = "Looks a customer up.",
		.schema = "{\"properties\":{\"key\":{\"type\":\"string\"}},\"required\":[\"key\"]}",
		.call = look_up,
		.owner = (void *)(uintptr_t)answer,
	};
	struct stage_config config = usual;
	struct fixture fixture;

	fake_model = looking_up;
	looked_up = 0;
	told_of_it = false;
	config.limits.calls = calls;
	stage_function = &function;
	begin(&fixture, &config);
	drive(&fixture);
	assert_int_equal(fixture.results, 1);
	end(&fixture);
	stage_function = NULL;
	assert_true(told_of_it);
}

/* Code calls it, is told what it said, and the call is one of those that the limit counts. */
static void test_functions(void **state)
{
	(void)state;
	run_with_function("[1, 2]", 10);
	assert_int_equal(looked_up, 1);
	assert_string_equal(fake_told, "[1, 2]|");
	run_with_function(NULL, 10);
	assert_true(strstr(fake_told, "it is closed") != NULL);
	run_with_function("1", 1);
	assert_int_equal(looked_up, 0);
	assert_int_equal(fake_told[0], '!');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_permits),
		cmocka_unit_test(test_answers_are_not_copied),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_room_for_answers),
		cmocka_unit_test(test_permits_of_the_dead),
		cmocka_unit_test(test_fallbacks),
		cmocka_unit_test(test_fallback_below),
		cmocka_unit_test(test_small_budget),
		cmocka_unit_test(test_calls_are_capped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
