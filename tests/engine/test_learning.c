/* A budget's calls teach estimates; of some calls nothing is learned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "engine/ask.h"
#include "engine/caller.h"
#include "engine/estimators.h"
#include "engine/stage.h"
#include "fake/outside.h"

enum { LONG = 30000, TURNS = 5 };

static char long_turn[LONG + 64];
static bool estimated, forgotten;

/* Code after so many words that five such turns are less than half of the window, but not if each
 * were counted twice. */
static const char *talking(const struct llm_request *request)
{
	for (size_t i = 0; i < request->message_count; i++)
		forgotten |= text_starts(request->messages[i].text, "[note] The conversation");
	return request->turn < TURNS ? long_turn : "FINAL(the end)";
}

static struct llm_usage doubled(const struct llm_request *request)
{
	int64_t tokens = 0;

	for (size_t i = 0; i < request->message_count; i++)
		tokens += text_tokens(request->messages[i].text);
	return (struct llm_usage){.input = 2 * tokens, .output = 5, .estimated = estimated};
}

static struct llm_usage single(const struct llm_request *request)
{
	struct llm_usage usage = doubled(request);

	usage.input /= 2;
	return usage;
}

static bool forgets(int attempts, bool is_estimated, int64_t lowered)
{
	struct stage_config config = usual;
	struct fixture fixture;

	memset(long_turn, 'w', LONG);
	for (size_t i = 0; i < LONG; i += 4)
		long_turn[i] = ' ';
	strcpy(long_turn + LONG, "\n```repl\nprint\n```");
	config.limits.cost = config.limits.tokens = BUDGET_UNLIMITED;
	fake_model = talking;
	fake_usage = lowered ? single : doubled;
	fake_attempts = attempts;
	fake_lowered = lowered;
	estimated = is_estimated;
	forgotten = false;
	begin(&fixture, &config);
	drive(&fixture);
	assert_true(text_equal(output(&fixture), "the end"));
	end(&fixture);
	fake_usage = NULL;
	fake_attempts = 0;
	fake_lowered = 0;
	return forgotten;
}

/* A model's count of a conversation is known from what it reported of one attempt only, and not
 * from the sum of the two where a reply was cut and asked for again. */
static void test_history(void **state)
{
	(void)state;
	assert_true(forgets(1, false, 0));
	assert_false(forgets(1, true, 0));
	assert_false(forgets(2, false, 0));
	assert_false(forgets(1, false, 100));
}

static const char *brief(const struct llm_request *request)
{
	if (request->kind == LLM_FORCED)
		return "forced words";
	return request->turn ? "FINAL(the end)" : "```repl\nprint\n```";
}

/* Five times what was estimated. */
static struct llm_usage dear(const struct llm_request *request)
{
	struct llm_usage usage = doubled(request);

	usage.input = usage.input / 2 * 5;
	return usage;
}

static const char *source(int attempts, bool is_estimated)
{
	struct stage_config config = usual;
	struct fixture fixture;
	const char *stop;

	fake_model = brief;
	fake_usage = dear;
	fake_attempts = attempts;
	estimated = is_estimated;
	config.limits.tokens = 13500;
	begin(&fixture, &config);
	drive(&fixture);
	stop = json_string_value(json_object_get(fixture.result, "stopReason"));
	stop = !strcmp(stop, "final") ? "final" : "stopped";
	end(&fixture);
	fake_usage = NULL;
	fake_attempts = 0;
	return stop;
}

/* A model that counts five times as much makes the next turn too dear; of several attempts, of
 * which only the sum is known, and of an estimate nothing follows. */
static void test_bounds(void **state)
{
	(void)state;
	assert_string_equal(source(1, false), "stopped");
	assert_string_equal(source(1, true), "final");
	assert_string_equal(source(2, false), "final");
}

/* A call that was had before, in however many attempts, was learned from then. */
static void test_what_was_had_before(void **state)
{
	static const struct {
		struct llm_response response;
		bool learned;
	} rows[] = {
		{{.billed = 1}, true},
		{{.billed = 1, .journaled = true}, false},
		{{.billed = 1, .cached = true}, false},
	};
	const struct llm_request request = {.model = "fake", .max_tokens = 100};
	const struct token_counts counts = {0};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct llm_response response = rows[i].response;
		struct estimators estimators = {0};
		struct scope scope = {.estimators = &estimators};
		struct caller caller = {.scope = &scope};

		response.usage = (struct llm_usage){.input = 100, .output = 10};
		ask_learn(&caller, &request, &counts, &response);
		assert_int_equal(estimators.count, rows[i].learned);
		estimators_done(&estimators);
	}
}

/* The vocabulary that a model's name tells holds before its first bill, and is what that corrects.
 */
static void test_vocabularies(void **state)
{
	const struct llm_message thai = {
		.text = text_of("\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e04\u0e23\u0e31\u0e1a")};
	const char *const names[] = {"gemma-3-4b", "some-model", "claude-3-opus"};
	struct estimators estimators = {0};
	int64_t before = 0;

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct token_counts counts;
		int64_t bound = estimators_bound(&estimators, names[i], &thai, 1, &counts);
		struct estimator *learned;

		assert_true(bound > before);
		before = bound;
		assert_int_equal(estimators.count, i);
		learned = estimators_learn(&estimators, names[i]);
		assert_int_equal(estimators_bound(&estimators, names[i], &thai, 1, &counts), bound);
		assert_ptr_equal(estimators_look(&estimators, names[i]), learned);
	}
	estimators_done(&estimators);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_history), cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_what_was_had_before), cmocka_unit_test(test_vocabularies)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
