/* Answers that somebody wants to see before they are taken, by the hook `check`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/json.h"
#include "engine/stage.h"
#include "fake/outside.h"

enum { WAITING_MAX = 64 };

enum manner { AT_ONCE, LATER, NEVER, FREEING };

/* The host's check: takes "good". */
struct checker {
	enum manner manner;
	int asked;
	struct rlmd_check *waiting[WAITING_MAX];
	bool good[WAITING_MAX];
	int waiting_count;
	int results;
	json_t *result;
};

static struct checker checker;
static int forced, told; /* requests of that kind; and those that have what was wrong */

static bool says(const struct llm_request *request, const char *words)
{
	const struct rlmd_text last = request->messages[request->message_count - 1].text;

	return memmem(last.bytes, last.size, words, strlen(words));
}

static void count(const struct llm_request *request)
{
	forced += request->kind == LLM_FORCED;
	told += says(request, "it has to be good, not");
}

static const char *learning(const struct llm_request *request)
{
	count(request);
	return says(request, "it has to be good, not") ? "FINAL(good)" : "FINAL(bad)";
}

static const char *stubborn(const struct llm_request *request)
{
	count(request);
	return request->kind == LLM_FORCED ? "bad words" : "FINAL(bad)";
}

/* Its own answer is nothing, and what it says when it is asked for words is. */
static const char *late(const struct llm_request *request)
{
	count(request);
	if (request->kind == LLM_FORCED)
		return forced > 1 ? "good" : "bad words";
	return "FINAL(bad)";
}

static const char *breaking(const struct llm_request *request)
{
	count(request);
	return request->turn ? NULL : "```repl\nprint\n```\nFINAL(bad)";
}

static const char *by_code(const struct llm_request *request)
{
	count(request);
	return request->turn ? "FINAL(good)" : "```repl\nfinal\n```";
}

static void say(struct rlmd_check *check, bool good)
{
	if (good)
		rlmd_check_accept(check);
	else
		rlmd_check_reject(check, "it has to be good, not\nanything else");
}

static void say_all(void)
{
	for (int i = 0; i < checker.waiting_count; i++)
		say(checker.waiting[i], checker.good[i]);
	checker.waiting_count = 0;
}

static void on_check(void *owner, struct rlmd_job *job, struct rlmd_text answer,
		     struct rlmd_check *check)
{
	bool good = text_equal(answer, "good");

	(void)owner;
	checker.asked++;
	if (checker.manner == AT_ONCE) {
		say(check, good);
		return;
	}
	assert_in_range(checker.waiting_count, 0, WAITING_MAX - 1);
	checker.good[checker.waiting_count] = good;
	checker.waiting[checker.waiting_count++] = check;
	if (checker.manner == FREEING)
		rlmd_job_free(job);
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	(void)owner;
	(void)job;
	checker.results++;
	json_decref(checker.result);
	checker.result = json_incref(result->object);
}

static const struct rlmd_hooks hooks = {.size = sizeof hooks, .end = on_end, .check = on_check};

struct stand {
	struct event_base *base;
	struct rlmd_engine *engine;
	struct rlmd_job *job;
};

static struct stand open_stand(const char *(*model)(const struct llm_request *), enum manner manner,
			       int64_t turns)
{
	struct rlmd_engine_options options = {.size = sizeof options, .max_workers = 2};
	struct stand stand = {.base = event_base_new()};
	struct stage_config config = usual;
	struct rlmd_job_options job;
	struct rlmd_limits limits;

	config.limits.max_iterations = turns;
	job = stage_options(&config, &limits);
	checker = (struct checker){.manner = manner};
	forced = told = 0;
	fake_model = model;
	fake_events = fake_death = 0;
	options.base = stand.base;
	stand.engine = rlmd_engine_new(&options, NULL);
	fake_provider(stand.engine);
	job.task = text_of("the task");
	job.hooks = &hooks;
	stand.job = rlmd_job_start(stand.engine, &job, NULL);
	assert_non_null(stand.job);
	return stand;
}

static void turn(struct stand *stand)
{
	event_base_loop(stand->base, EVLOOP_NONBLOCK);
	if (checker.manner == LATER)
		say_all();
}

static void drive_stand(struct stand *stand)
{
	for (int i = 0; i < 100000 && !checker.results; i++)
		turn(stand);
	assert_int_equal(checker.results, 1);
}

static void close_stand(struct stand *stand)
{
	rlmd_engine_free(stand->engine);
	say_all(); /* which nobody waits for any more */
	event_base_free(stand->base);
	json_decref(checker.result);
	checker.result = NULL;
	assert_int_equal(fake_calls, 0);
	assert_int_equal(fake_workers, 0);
}

static const char *error_kind(void)
{
	return json_get_string(json_object_get(checker.result, "error"), "kind");
}

/* The model is told of a fault, and its next answer counts. */
static void test_tries_again(void **state)
{
	(void)state;
	for (enum manner manner = AT_ONCE; manner <= LATER; manner++) {
		struct stand stand = open_stand(learning, manner, 10);

		drive_stand(&stand);
		assert_string_equal(json_get_string(checker.result, "output"), "good");
		assert_string_equal(json_get_string(checker.result, "stopReason"), "final");
		assert_int_equal(checker.asked, 2);
		assert_int_equal(told, 1);
		assert_int_equal(forced, 0);
		close_stand(&stand);
	}
}

/* An answer out of code is one like any other. */
static void test_of_code(void **state)
{
	struct stand stand = open_stand(by_code, LATER, 10);

	(void)state;
	drive_stand(&stand);
	assert_string_equal(json_get_string(checker.result, "output"), "good");
	assert_int_equal(checker.asked, 2);
	assert_int_equal(told, 1);
	close_stand(&stand);
}

/* With its turns it ends: forced twice, and then for good. */
static void test_never_good(void **state)
{
	struct stand stand = open_stand(stubborn, LATER, 3);
	const char *message;

	(void)state;
	drive_stand(&stand);
	assert_string_equal(error_kind(), "schema");
	assert_string_equal(json_get_string(checker.result, "stopReason"), "schema");
	assert_string_equal(json_get_string(checker.result, "output"), "");
	assert_int_equal(checker.asked, 5);
	assert_int_equal(forced, 2);
	assert_int_equal(told, 4);
	message = json_get_string(json_object_get(checker.result, "error"), "message");
	assert_non_null(strstr(message, "it has to be good, not"));
	assert_null(strstr(message, "anything else")); /* the first thing is enough */
	close_stand(&stand);
}

/* A forced answer may be mended, too. */
static void test_forced_again(void **state)
{
	struct stand stand = open_stand(late, AT_ONCE, 1);

	(void)state;
	drive_stand(&stand);
	assert_string_equal(json_get_string(checker.result, "output"), "good");
	assert_string_equal(json_get_string(checker.result, "stopReason"), "max_iterations");
	assert_int_equal(forced, 2);
	close_stand(&stand);
}

/* One that nothing can confirm any more is no way around it. */
static void test_unconfirmed(void **state)
{
	struct stand stand = open_stand(breaking, AT_ONCE, 10);

	(void)state;
	drive_stand(&stand);
	assert_int_equal(checker.asked, 1);
	assert_false(json_get_bool(checker.result, "success", true));
	assert_string_equal(json_get_string(checker.result, "stopReason"), "provider_error");
	assert_string_equal(json_get_string(checker.result, "output"), "");
	close_stand(&stand);
}

/* C4: freed at any moment, whether or not the host ever says something. */
static void test_cancel_sweep(void **state)
{
	(void)state;
	for (enum manner manner = AT_ONCE; manner <= LATER; manner++) {
		bool ended = false;

		for (int n = 0; !ended; n++) {
			struct stand stand = open_stand(stubborn, manner, 3);

			for (int i = 0; i < n; i++)
				turn(&stand);
			ended = checker.results;
			close_stand(&stand);
		}
	}
}

/* Interrupted while it is waited for: an answer is forced, which is checked in its turn. */
static void test_interrupted_while_it_waits(void **state)
{
	struct stand stand = open_stand(late, NEVER, 10);

	(void)state;
	while (!checker.asked)
		turn(&stand);
	checker.manner = LATER;
	rlmd_job_interrupt(stand.job);
	drive_stand(&stand);
	assert_string_equal(json_get_string(checker.result, "stopReason"), "interrupted");
	assert_string_equal(json_get_string(checker.result, "output"), "good");
	close_stand(&stand);
}

/* From inside the hook the job may be freed. */
static void test_freed_from_inside(void **state)
{
	struct stand stand = open_stand(learning, FREEING, 10);

	(void)state;
	for (int i = 0; i < 1000; i++)
		turn(&stand);
	assert_int_equal(checker.results, 0);
	assert_int_equal(checker.asked, 1);
	close_stand(&stand);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tries_again),
		cmocka_unit_test(test_of_code),
		cmocka_unit_test(test_never_good),
		cmocka_unit_test(test_forced_again),
		cmocka_unit_test(test_unconfirmed),
		cmocka_unit_test(test_cancel_sweep),
		cmocka_unit_test(test_interrupted_while_it_waits),
		cmocka_unit_test(test_freed_from_inside),
	};

	return cmocka_run_group_tests_name("answer_check", tests, NULL, NULL);
}
