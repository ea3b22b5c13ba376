/* One call of a function: answered at once, later, never; by the host or by a program. */
#include "engine/function_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "engine/function_set.h"
#include "wire/limit.h"

struct story {
	struct event_base *base;
	struct function_set *set;
	struct function *function;
	struct rlmd_function_call *call;
	const char *reply, *failure;     /* what the host says at once; NULL: nothing */
	struct rlmd_function_call *held; /* what it has not answered */
	int asked, cancelled, done;
	bool telling, guarded; /* as the job has it; while a call was cancelled */
	char arguments[64], json[256];
	struct rlmd_error err;
};

static void serve(void *owner, struct rlmd_function_call *call, struct rlmd_text arguments)
{
	struct story *story = owner;

	story->asked++;
	snprintf(story->arguments, sizeof story->arguments, "%.*s", (int)arguments.size,
		 arguments.bytes);
	if (story->reply)
		rlmd_function_reply(call, rlmd_text_of(story->reply));
	else if (story->failure)
		rlmd_function_fail(call, story->failure);
	else
		story->held = call;
}

static void on_cancel(void *owner, struct rlmd_function_call *call)
{
	struct story *story = owner;

	assert_ptr_equal(call, story->held);
	story->held = NULL;
	story->cancelled++;
	story->guarded = story->telling;
}

static void on_done(void *owner, struct rlmd_text json, const struct rlmd_error *err)
{
	struct story *story = owner;

	story->done++;
	story->call = NULL;
	snprintf(story->json, sizeof story->json, "%.*s", (int)json.size,
		 json.bytes ? json.bytes : "");
	if (err)
		story->err = *err;
}

static void begin(struct story *story, struct rlmd_function function, const char *arguments)
{
	function.size = sizeof function;
	function.name = "lookup";
	function.doc = "Looks up.";
	function.schema = "{\"properties\":{\"key\":{\"type\":\"string\"}}}";
	function.owner = story;
	if (!function.argv)
		function.call = serve;
	if (!story->base)
		story->base = event_base_new();
	if (!story->set)
		story->set = function_set_new(&function, 1, NULL, &story->err);
	assert_non_null(story->set);
	story->function = function_set_find(story->set, "lookup");
	story->call = function_call_start(story->base, story->function, text_of(arguments), on_done,
					  story);
	assert_int_equal(story->asked + story->done, 0);
}

static void end(struct story *story)
{
	function_call_cancel(story->call);
	function_set_free(story->set);
	event_base_free(story->base);
}

static void test_at_once(void **state)
{
	struct story story = {.reply = "{\"a\":[1,null]}"};

	(void)state;
	begin(&story, (struct rlmd_function){0}, "{\"key\":\"x\"}");
	event_base_dispatch(story.base);
	assert_string_equal(story.arguments, "{\"key\":\"x\"}");
	assert_string_equal(story.json, "{\"a\":[1,null]}");
	assert_int_equal(story.done, 1);
	assert_int_equal(story.err.kind, RLMD_ERROR_NONE);
	end(&story);
}

static void test_later(void **state)
{
	struct story story = {0};

	(void)state;
	begin(&story, (struct rlmd_function){.timeout_ms = -1}, "{}");
	event_base_loop(story.base, EVLOOP_NONBLOCK);
	assert_int_equal(story.done, 0);
	rlmd_function_reply(story.held, rlmd_text_of("7"));
	assert_int_equal(story.done, 0);
	event_base_dispatch(story.base);
	assert_string_equal(story.json, "7");
	end(&story);
}

/* As large as a frame to the worker may be, and no larger. */
static void test_large_answers(void **state)
{
	char *answer = xcalloc(ANSWER_MAX + 2, 1);

	(void)state;
	for (size_t more = 0; more < 2; more++) {
		size_t size = ANSWER_MAX + more;
		struct story story = {0};

		memset(answer, 'x', size);
		answer[0] = answer[size - 1] = '"';
		begin(&story, (struct rlmd_function){.timeout_ms = -1}, "{}");
		event_base_loop(story.base, EVLOOP_NONBLOCK);
		rlmd_function_reply(story.held, (struct rlmd_text){answer, size});
		event_base_dispatch(story.base);
		assert_int_equal(story.done, 1);
		assert_int_equal(story.err.kind, more ? RLMD_ERROR_FUNCTION : RLMD_ERROR_NONE);
		end(&story);
	}
	free(answer);
}

static void test_failures(void **state)
{
	static const struct {
		const char *reply, *failure, *arguments, *text;
		enum rlmd_error_kind kind;
	} rows[] = {
		{NULL, "no such customer", "{}", "no such customer", RLMD_ERROR_FUNCTION},
		{"{", NULL, "{}", "no JSON", RLMD_ERROR_FUNCTION},
		{"1", NULL, "{\"key\":1}", "key is an int, a str is wanted", RLMD_ERROR_INPUT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct story story = {.reply = rows[i].reply, .failure = rows[i].failure};

		begin(&story, (struct rlmd_function){0}, rows[i].arguments);
		event_base_dispatch(story.base);
		assert_int_equal(story.done, 1);
		assert_int_equal(story.err.kind, rows[i].kind);
		assert_non_null(strstr(story.err.text, rows[i].text));
		assert_int_equal(story.asked, rows[i].kind == RLMD_ERROR_FUNCTION);
		end(&story);
	}
}

/* A host that is too late is told so, or may answer still; it is heard once. */
static void test_timeout(void **state)
{
	struct story told = {0}, untold = {0};

	(void)state;
	begin(&told, (struct rlmd_function){.timeout_ms = 5, .cancel = on_cancel}, "{}");
	function_set_guard(told.set, &told.telling);
	event_base_dispatch(told.base);
	assert_true(told.guarded && !told.telling); /* it may not free what still is used */
	assert_int_equal(told.err.kind, RLMD_ERROR_TIMEOUT);
	assert_int_equal(told.cancelled, 1);
	end(&told);

	begin(&untold, (struct rlmd_function){.timeout_ms = 5}, "{}");
	event_base_dispatch(untold.base);
	assert_int_equal(untold.err.kind, RLMD_ERROR_TIMEOUT);
	end(&untold);
	rlmd_function_reply(untold.held, rlmd_text_of("1")); /* after all is gone */
	assert_int_equal(untold.done, 1);
}

static void test_cancelled(void **state)
{
	struct story early = {0}, late = {0};

	(void)state;
	begin(&early, (struct rlmd_function){0}, "{}");
	function_call_cancel(early.call);
	early.call = NULL;
	event_base_dispatch(early.base);
	assert_int_equal(early.asked, 0);
	end(&early);

	begin(&late, (struct rlmd_function){.cancel = on_cancel}, "{}");
	event_base_loop(late.base, EVLOOP_NONBLOCK);
	function_call_cancel(late.call);
	late.call = NULL;
	assert_int_equal(late.cancelled, 1);
	event_base_dispatch(late.base);
	assert_int_equal(late.done, 0);
	end(&late);
}

static void test_max_calls(void **state)
{
	struct story story = {.reply = "1"};

	(void)state;
	begin(&story, (struct rlmd_function){.max_calls = 1}, "{}");
	event_base_dispatch(story.base);
	assert_int_equal(story.err.kind, RLMD_ERROR_NONE);
	story.asked = story.done = 0;
	begin(&story, (struct rlmd_function){.max_calls = 1}, "{}");
	event_base_dispatch(story.base);
	assert_int_equal(story.asked, 0);
	assert_int_equal(story.err.kind, RLMD_ERROR_BUDGET);
	end(&story);
}

static void run_program(struct story *story, const char *script, int64_t timeout_ms)
{
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};

	begin(story, (struct rlmd_function){.argv = argv, .timeout_ms = timeout_ms},
	      "{\"key\":\"x\"}");
	event_base_dispatch(story->base);
	assert_int_equal(story->done, 1);
	end(story);
}

static void test_program(void **state)
{
	struct story fine = {0}, failed = {0}, silent = {0}, missing = {0};
	const char *const nothing[] = {"/nowhere/at/all", NULL};

	(void)state;
	setenv("OPENAI_API_KEY", "sk-of-a-test", 1);
	run_program(&fine,
		    "read line; test -z \"$OPENAI_API_KEY\" -a -n \"$PATH\" && "
		    "printf '[%s,\"%s\"]' \"$line\" \"$PWD\"",
		    0);
	unsetenv("OPENAI_API_KEY");
	assert_int_equal(fine.err.kind, RLMD_ERROR_NONE);
	assert_string_equal(fine.json, "[{\"key\":\"x\"},\"/\"]");
	run_program(&failed, "echo it is gone >&2; exit 3", 0);
	assert_int_equal(failed.err.kind, RLMD_ERROR_FUNCTION);
	assert_non_null(strstr(failed.err.text, "exit status 3"));
	assert_non_null(strstr(failed.err.text, "it is gone"));
	run_program(&silent, "true", 0);
	assert_int_equal(silent.err.kind, RLMD_ERROR_FUNCTION);
	begin(&missing, (struct rlmd_function){.argv = nothing}, "{}");
	event_base_dispatch(missing.base);
	assert_non_null(strstr(missing.err.text, "/nowhere/at/all"));
	end(&missing);
}

/* It is killed, with what it has started. */
static void test_late_program(void **state)
{
	struct story story = {0};

	(void)state;
	run_program(&story, "sleep 1000 & sleep 1000", 50);
	assert_int_equal(story.err.kind, RLMD_ERROR_TIMEOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_at_once),       cmocka_unit_test(test_later),
		cmocka_unit_test(test_large_answers), cmocka_unit_test(test_failures),
		cmocka_unit_test(test_timeout),       cmocka_unit_test(test_cancelled),
		cmocka_unit_test(test_max_calls),     cmocka_unit_test(test_program),
		cmocka_unit_test(test_late_program),
	};

	return cmocka_run_group_tests_name("function_call", tests, NULL, NULL);
}
