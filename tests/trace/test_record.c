/* The events of a run: what each says, how much of foreign texts it keeps, and the tree of them. */
#include "trace/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/json.h"

struct fixture {
	struct trace *trace;
	struct budget *budget;
	json_t *events; /* owned: all that were told */
};

static void on_event(void *owner, enum trace_kind kind, json_t *event)
{
	struct fixture *fixture = owner;

	assert_int_equal(trace_kind_of(json_get_string(event, "event")), kind);
	json_array_append(fixture->events, event);
}

static void begin(struct fixture *fixture)
{
	static const struct budget_limits limits = {
		.cost = BUDGET_UNLIMITED,
		.tokens = BUDGET_UNLIMITED,
		.time_ms = 3600000,
		.max_depth = 2,
		.max_iterations = 7,
		.calls = BUDGET_UNLIMITED,
		.subruns = BUDGET_UNLIMITED,
	};

	fixture->events = json_array();
	fixture->trace = trace_new(true, TRACE_ALL, on_event, fixture);
	fixture->budget = budget_new(&limits, NULL, NULL);
}

static void end(struct fixture *fixture)
{
	trace_free(fixture->trace);
	budget_free(fixture->budget);
	json_decref(fixture->events);
}

static const json_t *last(const struct fixture *fixture)
{
	return json_array_get(fixture->events, json_array_size(fixture->events) - 1);
}

/* The value of a member, as JSON, is that. */
static void expect(const json_t *object, const char *name, const char *value)
{
	auto_free char *found = json_dumps(json_object_get(object, name),
					   JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);

	if (!found || strcmp(found, value))
		fail_msg("%s is %s, not %s", name, found ? found : "not there", value);
}

static void open_run(struct fixture *fixture, const char *run, const char *parent, int depth)
{
	struct context context = {0};
	struct rlmd_error err;

	assert_true(context_from_text(text_of("an input"), &context, &err));
	record_run(fixture->trace, run, parent, depth, text_of("the task"), "m", "small", &context,
		   NULL);
	context_done(&context);
}

static void test_run(void **state)
{
	struct fixture fixture;
	const json_t *event, *input;

	(void)state;
	begin(&fixture);
	open_run(&fixture, "r", NULL, 0);
	event = last(&fixture);
	expect(event, "event", "\"run\"");
	expect(event, "seq", "0");
	expect(event, "parent", "null");
	expect(event, "task", "\"the task\"");
	expect(event, "promptProfile", "\"small\"");
	assert_null(json_object_get(event, "sandbox"));
	input = json_array_get(json_object_get(event, "contexts"), 0);
	expect(input, "name", "\"context\"");
	expect(input, "length", "8");
	open_run(&fixture, "s", "r", 1);
	expect(last(&fixture), "parent", "\"r\"");
	expect(last(&fixture), "seq", "1");
	end(&fixture);
}

/* A turn, its thoughts of both kinds, its block with and without an error. */
static void test_turn(void **state)
{
	const struct llm_response reply = {.text = text_of("```repl\n1/0\n```"),
					   .thinking = text_of("hm"),
					   .usage = {.input = 7, .output = 3, .cache_read = 2},
					   .cost_known = true,
					   .cost = 250000000000,
					   .model = "m-1",
					   .duration_ms = 40};
	const struct worker_block failed = {.stdout_text = text_of("so far"),
					    .failed = true,
					    .error = text_of("ZeroDivisionError"),
					    .duration_ms = 2};
	const struct worker_block fine = {.stdout_text = text_of("1\n")};
	struct fixture fixture;
	const json_t *root, *turn;

	(void)state;
	begin(&fixture);
	open_run(&fixture, "r", NULL, 0);
	record_demonstration(fixture.trace, "r", text_of("look()"), &fine, 100);
	expect(last(&fixture), "code", "\"look()\"");
	expect(last(&fixture), "error", "null");
	record_response(fixture.trace, "r", 0, text_of("do it"), &reply, text_of("well"));
	expect(last(&fixture), "prompt", "{\"content\":\"do it\",\"tokens\":7}");
	expect(json_object_get(last(&fixture), "response"), "thinking", "\"hm\\nwell\"");
	expect(json_object_get(last(&fixture), "response"), "cost", "0.25");
	expect(last(&fixture), "cachedTokens", "2");
	record_block(fixture.trace, "r", 0, text_of("1/0"), &failed, 100);
	expect(last(&fixture), "stdout", "\"so far\"");
	expect(last(&fixture), "error", "\"ZeroDivisionError\"");
	record_iteration(fixture.trace, "r", 0);
	expect(last(&fixture), "index", "0");
	root = trace_tree(fixture.trace);
	turn = json_array_get(json_object_get(root, "iterations"), 0);
	assert_int_equal(json_array_size(json_object_get(turn, "codeExecutions")), 1);
	assert_non_null(json_object_get(root, "demonstration"));
	end(&fixture);
}

/* Of a call that failed little of the prompt is kept; of one that did not, all that is usual. */
static void test_call(void **state)
{
	auto_free char *prompt = calloc(1, 5001);
	const struct llm_message message = {LLM_USER, {prompt, 5000}, {0}};
	const struct llm_request request = {
		.model = "m", .messages = &message, .message_count = 1, .kind = LLM_QUERY};
	const struct llm_response reply = {.text = text_of("yes"),
					   .usage = {.input = 7, .output = 3}};
	const struct llm_wait wait = {
		.reason = "it is being loaded", .http_status = 503, .waited_ms = 10, .next_ms = 20};
	struct rlmd_error err = {.kind = RLMD_ERROR_OVERLOADED, .http_status = 529, .text = "busy"};
	struct fixture fixture;

	(void)state;
	memset(prompt, 'p', 5000);
	begin(&fixture);
	open_run(&fixture, "r", NULL, 0);
	record_call(fixture.trace, "r", 3, NULL, &request, &reply, NULL);
	expect(last(&fixture), "kind", "\"llm_query\"");
	expect(last(&fixture), "model", "\"m\"");
	expect(last(&fixture), "tokens", "10");
	expect(last(&fixture), "cost", "null"); /* unknown */
	assert_int_equal(json_get_text(last(&fixture), "prompt").size, 5000);
	assert_null(json_object_get(last(&fixture), "error"));
	record_call(fixture.trace, "r", 1, "depth", &request, &reply, &err);
	expect(last(&fixture), "reason", "\"depth\"");
	expect(last(&fixture), "error",
	       "{\"httpStatus\":529,\"kind\":\"overloaded\",\"message\":\"busy\"}");
	assert_in_range(json_get_text(last(&fixture), "prompt").size, 1000, 1100);
	record_wait(fixture.trace, "r", 4, &request, &wait);
	expect(last(&fixture), "reason", "\"it is being loaded\"");
	expect(last(&fixture), "next", "20");
	record_degraded(fixture.trace, "r", true, "cut at its length limit");
	expect(last(&fixture), "call", "\"rlm_query\"");
	/* In the tree they stand in the order in which they were made. */
	expect(json_array_get(json_object_get(trace_tree(fixture.trace), "llmCalls"), 0), "index",
	       "1");
	end(&fixture);
}

static void test_others(void **state)
{
	struct rlmd_error none = {0}, err = {.kind = RLMD_ERROR_BUDGET, .text = "over"};
	struct record_ending ending = {.answer = text_of("42"),
				       .source = ANSWER_FINAL_DIRECT,
				       .stop = RLMD_STOP_FINAL,
				       .error = &none};
	const struct rlmd_plan_event plan = {
		.kind = RLMD_PLAN_EVENT_START, .count = 2, .wanted = 1};
	struct fixture fixture;

	(void)state;
	begin(&fixture);
	open_run(&fixture, "r", NULL, 0);
	record_plan(fixture.trace, "r", &plan);
	expect(last(&fixture), "run", "\"r\"");
	record_compaction(fixture.trace, "r", 2, 5, 9000, 4000);
	expect(last(&fixture), "tokensBefore", "9000");
	record_warning(fixture.trace, "r", "Cost at 83% of budget");
	expect(last(&fixture), "text", "\"Cost at 83% of budget\"");
	open_run(&fixture, "s", "r", 1);
	ending.error = &err;
	ending.source = ANSWER_MISSING;
	record_end(fixture.trace, "s", false, &ending, fixture.budget);
	expect(last(&fixture), "error", "{\"kind\":\"budget\",\"message\":\"over\"}");
	ending.error = &none;
	ending.source = ANSWER_FINAL_DIRECT;
	record_end(fixture.trace, "r", true, &ending, fixture.budget);
	expect(last(&fixture), "finalAnswer", "\"42\"");
	assert_null(json_object_get(last(&fixture), "error"));
	expect(json_object_get(last(&fixture), "usage"), "llmCalls", "0");
	expect(trace_tree(fixture.trace), "finalAnswer", "\"42\"");
	end(&fixture);
}

/* Foreign code calls and prints without end: the trace takes so much, and then little of each. */
static void test_bounds(void **state)
{
	enum { SIZE = 1 << 20 };
	auto_free char *text = malloc(SIZE);
	struct fixture fixture;
	int calls = 0, texts = 0;

	(void)state;
	begin(&fixture);
	while (trace_admit_call(fixture.trace))
		calls++;
	assert_int_equal(calls, 20000);
	memset(text, 'x', SIZE);
	while (trace_admit_text(fixture.trace, text_from(text, SIZE), SIZE) == SIZE)
		texts++;
	assert_int_equal(texts, 32);
	assert_int_equal(trace_admit_text(fixture.trace, text_of("short"), 5), 5);
	record_degraded(fixture.trace, "r", false, "one too many");
	assert_int_equal(json_array_size(fixture.events), 0);
	end(&fixture);
}

static size_t json_blocks;

static void *count_block(size_t size)
{
	json_blocks++;
	return malloc(size);
}

/* One event of most kinds. */
static void record_some(struct fixture *fixture)
{
	const struct llm_message message = {LLM_USER, text_of("a prompt"), {0}};
	const struct llm_request request = {
		.model = "m", .messages = &message, .message_count = 1, .kind = LLM_QUERY};
	const struct llm_response reply = {.text = text_of("yes"), .model = "m"};
	const struct worker_block block = {.stdout_text = text_of("1\n")};
	const struct llm_wait wait = {.reason = "it is overloaded"};
	const struct rlmd_plan_event plan = {.kind = RLMD_PLAN_EVENT_START};
	const struct record_function function = {.name = "f"};
	struct rlmd_error none = {0};
	struct record_ending ending = {.answer = text_of("42"), .error = &none};

	record_demonstration(fixture->trace, "r", text_of("look()"), &block, 100);
	record_response(fixture->trace, "r", 0, text_of("do it"), &reply, text_of("hm"));
	record_block(fixture->trace, "r", 0, text_of("1"), &block, 100);
	record_call(fixture->trace, "r", 0, NULL, &request, &reply, NULL);
	record_wait(fixture->trace, "r", 1, &request, &wait);
	record_degraded(fixture->trace, "r", false, "cut");
	record_function(fixture->trace, "r", &function);
	record_plan(fixture->trace, "r", &plan);
	record_compaction(fixture->trace, "r", 1, 2, 3, 4);
	record_warning(fixture->trace, "r", "a warning");
	record_iteration(fixture->trace, "r", 0);
	record_end(fixture->trace, "r", true, &ending, fixture->budget);
}

/* An event that nobody listens for is not made, but has its number. */
static void test_not_made(void **state)
{
	struct fixture fixture;
	json_malloc_t usual_malloc;
	json_free_t usual_free;

	(void)state;
	begin(&fixture);
	trace_free(fixture.trace);
	fixture.trace = trace_new(false, trace_only(TRACE_WAITING), on_event, &fixture);
	record_some(&fixture);
	assert_int_equal(json_array_size(fixture.events), 1);
	expect(last(&fixture), "event", "\"waiting\"");
	expect(last(&fixture), "seq", "4");
	assert_null(trace_tree(fixture.trace));
	trace_free(fixture.trace);
	fixture.trace = trace_new(false, 0, NULL, NULL);
	json_get_alloc_funcs(&usual_malloc, &usual_free);
	json_set_alloc_funcs(count_block, free);
	record_some(&fixture);
	json_set_alloc_funcs(usual_malloc, usual_free);
	assert_int_equal(json_blocks, 0);
	end(&fixture);
}

/* The tree is whole where nobody listens. */
static void test_tree_alone(void **state)
{
	struct fixture fixture;

	(void)state;
	begin(&fixture);
	trace_free(fixture.trace);
	fixture.trace = trace_new(true, 0, NULL, NULL);
	open_run(&fixture, "r", NULL, 0);
	record_some(&fixture);
	expect(trace_tree(fixture.trace), "finalAnswer", "\"42\"");
	assert_int_equal(json_array_size(json_object_get(trace_tree(fixture.trace), "llmCalls")),
			 1);
	assert_int_equal(json_array_size(json_object_get(trace_tree(fixture.trace), "iterations")),
			 1);
	end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_made), cmocka_unit_test(test_tree_alone),
		cmocka_unit_test(test_run),      cmocka_unit_test(test_turn),
		cmocka_unit_test(test_call),     cmocka_unit_test(test_others),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
