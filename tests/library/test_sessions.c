/*
 * Sessions (rlmd/repl.h) with real workers: functions of the host's, variables in and out as JSON,
 * interrupts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <event2/event.h>
#include <rlmd/engine.h>
#include <rlmd/function.h>
#include <rlmd/repl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIME_MS = 100000 };

struct host {
	struct rlmd_engine *engine; /* owned */
	struct rlmd_repl *repl;     /* owned */
	struct rlmd_function_call *open;
	size_t cancelled;
	bool told; /* a hook was called */
	bool failed, interrupted, found, is_json;
	char text[4000];   /* printed, the error, or the value */
	char printed[200]; /* while blocks ran */
	bool frees;        /* the session, when something is printed */
	struct rlmd_error error;
};

static void note(struct host *host, struct rlmd_text text)
{
	size_t used = strlen(host->text);

	snprintf(host->text + used, sizeof host->text - used, "%.*s", (int)text.size,
		 text.size ? text.bytes : "");
	host->told = true;
}

static void on_ready(void *owner, struct rlmd_repl *repl)
{
	(void)repl;
	((struct host *)owner)->told = true;
}

static void on_done(void *owner, struct rlmd_repl *repl, const struct rlmd_repl_block *block)
{
	struct host *host = owner;

	(void)repl;
	host->failed = block->failed;
	host->interrupted = block->interrupted;
	note(host, block->standard_output);
	note(host, block->error);
}

static void on_printed(void *owner, struct rlmd_repl *repl, bool is_error, struct rlmd_text text)
{
	struct host *host = owner;
	size_t used = strlen(host->printed);

	snprintf(host->printed + used, sizeof host->printed - used, "%s%.*s", is_error ? "!" : "",
		 (int)text.size, text.bytes);
	if (!host->frees)
		return;
	rlmd_repl_free(repl);
	host->repl = NULL;
	host->told = true;
}

static void on_json(void *owner, struct rlmd_repl *repl, bool found, bool is_json,
		    struct rlmd_text value)
{
	struct host *host = owner;

	(void)repl;
	host->found = found;
	host->is_json = is_json;
	note(host, value);
}

static void on_gone(void *owner, struct rlmd_repl *repl, const struct rlmd_error *error)
{
	struct host *host = owner;

	(void)repl;
	host->error = *error;
	host->told = true;
}

static void add(void *owner, struct rlmd_function_call *call, struct rlmd_text arguments)
{
	int a, b;
	char sum[20];

	(void)owner;
	if (sscanf(arguments.bytes, "{\"a\":%d,\"b\":%d}", &a, &b) != 2 &&
	    sscanf(arguments.bytes, "{\"a\": %d, \"b\": %d}", &a, &b) != 2) {
		rlmd_function_fail(call, "these are no numbers");
		return;
	}
	snprintf(sum, sizeof sum, "%d", a + b);
	rlmd_function_reply(call, rlmd_text_of(sum));
}

static void never(void *owner, struct rlmd_function_call *call, struct rlmd_text arguments)
{
	(void)arguments;
	((struct host *)owner)->open = call;
	((struct host *)owner)->told = true;
}

static void on_cancel(void *owner, struct rlmd_function_call *call)
{
	struct host *host = owner;

	host->cancelled += call == host->open;
}

static void wait_for(struct host *host)
{
	while (!host->told)
		event_base_loop(rlmd_engine_base(host->engine), EVLOOP_ONCE);
}

static int set_up(void **state)
{
	struct host *host = calloc(1, sizeof *host);
	const struct rlmd_function functions[] = {
		{.size = sizeof functions[0],
		 .name = "add",
		 .doc = "The sum.",
		 .schema = "{\"properties\": {\"a\": {\"type\": \"integer\"}, \"b\": {\"type\": "
			   "\"integer\"}}, \"required\": [\"a\", \"b\"]}",
		 .call = add},
		{.size = sizeof functions[0],
		 .name = "never",
		 .doc = "Does not end.",
		 .call = never,
		 .cancel = on_cancel,
		 .owner = host,
		 .timeout_ms = -1},
	};
	const struct rlmd_repl_hooks hooks = {
		.size = sizeof hooks,
		.ready = on_ready,
		.done = on_done,
		.json = on_json,
		.gone = on_gone,
		.owner = host,
		.printed = on_printed,
	};
	const struct rlmd_repl_options options = {
		.size = sizeof options,
		.hooks = &hooks,
		.functions = functions,
		.function_count = 2,
	};

	*state = host;
	host->engine = rlmd_engine_new(NULL, NULL);
	host->repl = rlmd_repl_start(host->engine, NULL, &options, &host->error);
	wait_for(host);
	return host->error.kind;
}

static int tear_down(void **state)
{
	struct host *host = *state;

	rlmd_repl_free(host->repl);
	rlmd_engine_free(host->engine);
	free(host);
	return 0;
}

static void begin(struct host *host)
{
	host->told = false;
	*host->text = '\0';
}

static void run(struct host *host, const char *code)
{
	begin(host);
	assert_true(rlmd_repl_execute(host->repl, rlmd_text_of(code), TIME_MS, NULL));
	wait_for(host);
}

static void test_functions(void **state)
{
	struct host *host = *state;

	run(host, "print(add(2, b=40))");
	assert_string_equal(host->text, "42\n");
	run(host, "import concurrent.futures as f\n"
		  "with f.ThreadPoolExecutor(8) as pool:\n"
		  "    print(sum(pool.map(add, range(50), range(50))))");
	assert_string_equal(host->text, "2450\n");
	run(host, "add('two', 3)");
	assert_true(host->failed);
	assert_non_null(strstr(host->text, "an int is wanted"));
	run(host, "llm_query('who?')");
	assert_non_null(strstr(host->text, "no model"));
}

static void get(struct host *host, const char *name)
{
	begin(host);
	assert_true(rlmd_repl_get_json(host->repl, name, TIME_MS, NULL));
	wait_for(host);
}

static void set(struct host *host, const char *name, const char *json)
{
	begin(host);
	assert_true(rlmd_repl_set_json(host->repl, name, rlmd_text_of(json), TIME_MS, NULL));
	wait_for(host);
	assert_false(host->failed);
}

/* Before the block is over, which is told by the function that it calls; and the hook may free the
 * session. */
static void test_printed_text(void **state)
{
	struct host *host = *state;

	run(host, "import sys\nprint('one')\nprint('two', file=sys.stderr)\nprint('3', end='')");
	assert_string_equal(host->printed, "one\n!two\n3");
	assert_string_equal(host->text, "one\n3");
	begin(host);
	assert_true(rlmd_repl_execute(host->repl, rlmd_text_of("print('now')\nnever()"), TIME_MS,
				      NULL));
	*host->printed = '\0';
	host->open = NULL;
	while (!host->open)
		assert_true(rlmd_engine_turn(host->engine, NULL));
	assert_string_equal(host->printed, "now\n");
	assert_string_equal(host->text, "");
	host->told = false;
	rlmd_repl_interrupt(host->repl);
	wait_for(host);
	host->frees = true;
	run(host, "print('the last')\nnever()");
	assert_null(host->repl);
}

static void test_variables_are_json(void **state)
{
	static const char *const values[] = {
		"null",
		"true",
		"-0.5",
		"\"\"",
		"\"'\\\"\\\\ \\u0000 \\n \303\251 \360\237\231\202 \342\200\250 {}\"",
		"[1, {\"a\": [], \"\303\251\": \"b\"}, 123456789012345678]",
	};
	struct host *host = *state;

	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		set(host, "value", values[i]);
		get(host, "value");
		assert_true(host->found && host->is_json);
		assert_string_equal(host->text, values[i]);
	}
	run(host, "import math\nother = {1, 2}; number = math.nan\ndef f(): pass");
	get(host, "other");
	assert_true(host->found && !host->is_json);
	assert_string_equal(host->text, "{1, 2}");
	get(host, "number");
	assert_true(host->found && !host->is_json);
	get(host, "nothing");
	assert_false(host->found);
	run(host, "print(value[1])");
	assert_string_equal(host->text, "{'a': [], '\303\251': 'b'}\n");
}

static void test_an_interrupt(void **state)
{
	struct host *host = *state;

	for (int i = 0; i < 2; i++) {
		begin(host);
		assert_true(rlmd_repl_execute(
			host->repl, rlmd_text_of(i ? "kept = 7; never()" : "add(1, 1); never()"),
			TIME_MS, NULL));
		wait_for(host); /* the function is called: the code runs */
		begin(host);
		rlmd_repl_interrupt(host->repl);
		rlmd_repl_interrupt(host->repl);
		wait_for(host);
		assert_int_equal(host->error.kind, RLMD_ERROR_NONE);
		assert_true(host->interrupted);
	}
	rlmd_repl_interrupt(host->repl);
	run(host, "print(kept)");
	assert_string_equal(host->text, "7\n");
	assert_false(host->interrupted);
}

/* The host is told that nobody wants the answer any more. */
static void test_freed_while_a_function_is_called(void **state)
{
	struct host *host = *state;

	begin(host);
	assert_true(rlmd_repl_execute(host->repl, rlmd_text_of("never()"), TIME_MS, NULL));
	wait_for(host);
	rlmd_repl_free(host->repl);
	host->repl = NULL;
	assert_int_equal(host->cancelled, 1);
}

static void test_refused(void **state)
{
	struct host *host = *state;
	const struct rlmd_function bad = {.size = sizeof bad, .name = "no name", .call = add};
	const struct rlmd_repl_options options = {
		.size = sizeof options, .functions = &bad, .function_count = 1};
	struct rlmd_error err = {0};

	assert_null(rlmd_repl_start(host->engine, NULL, &options, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_false(rlmd_repl_get_json(host->repl, NULL, 0, NULL));
	assert_false(rlmd_repl_get_json(host->repl, "a.b", 0, NULL));
	assert_false(rlmd_repl_set_json(host->repl, "a", rlmd_text_of("nan"), 0, NULL));
	assert_false(rlmd_repl_set_json(host->repl, "a", rlmd_text_of(""), 0, NULL));
	assert_false(rlmd_repl_set_json(host->repl, "a", (struct rlmd_text){0}, 0, NULL));
	rlmd_repl_interrupt(NULL);
	run(host, "print(1)");
	assert_string_equal(host->text, "1\n");
	begin(host);
	rlmd_repl_get_json(host->repl, "add", TIME_MS, NULL);
	assert_false(rlmd_repl_get_json(host->repl, "add", TIME_MS, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	wait_for(host);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_functions),    TEST(test_variables_are_json),
		TEST(test_an_interrupt), TEST(test_freed_while_a_function_is_called),
		TEST(test_refused),      TEST(test_printed_text),
	};

	return cmocka_run_group_tests_name("sessions", tests, NULL, NULL);
}
