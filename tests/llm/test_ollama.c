/* Ollama's /api/chat: a window that fits, lines of JSON, hosts as OLLAMA_HOST has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "adapting.h"

static const struct adapter *const ollama = &adapter_ollama;

#define LINE(message) "{\"model\":\"llama3.2\",\"message\":" message ",\"done\":false}\n"
#define DONE                                                                                       \
	"{\"model\":\"llama3.2\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},"           \
	"\"done\":true,\"done_reason\":\"stop\",\"total_duration\":5043500667,"                    \
	"\"prompt_eval_count\":26,\"eval_count\":290}\n"

static json_t *encoded_with(size_t prompt_size, int64_t max_tokens, bool stream)
{
	char *prompt = xcalloc(prompt_size + 1, 1);
	struct llm_message messages[] = {{LLM_SYSTEM, text_of("s")}, {LLM_USER, {0}}};
	struct llm_request request = {
		.model = "m", .messages = messages, .message_count = 2, .max_tokens = max_tokens};
	json_t *body;

	for (size_t i = 0; i < prompt_size; i++)
		prompt[i] = "word "[i % 5];
	messages[1].text = text_from(prompt, prompt_size);
	body = encoded_json(ollama, &request, 0, stream);
	free(prompt);
	return body;
}

static int64_t window_with(size_t prompt_size, int64_t max_tokens)
{
	json_auto_t *body = encoded_with(prompt_size, max_tokens, true);

	return json_get_integer(json_object_get(body, "options"), "num_ctx", 0);
}

/* LIB-18, A10: num_ctx, truncate and stream are said outright, for their defaults lose text. */
static void says_what_it_needs(void **state)
{
	json_auto_t *body = encoded_with(10, 100, true);
	json_auto_t *whole = encoded_with(10, 100, false);
	json_t *options = json_object_get(body, "options");

	(void)state;
	assert_true(json_is_true(json_object_get(body, "stream")));
	assert_true(json_is_false(json_object_get(whole, "stream")));
	assert_true(json_is_false(json_object_get(body, "truncate")));
	assert_true(json_is_false(json_object_get(body, "shift")));
	assert_int_equal(json_get_integer(options, "num_predict", 0), 100);
	assert_int_equal(json_get_integer(options, "num_ctx", 0), 4096);
	assert_int_equal(json_array_size(json_object_get(body, "messages")), 2);
	/* A3: beside these no sampling parameter. */
	assert_int_equal(json_object_size(body), 6);
	assert_int_equal(json_object_size(options), 2);
}

/* A10: the window holds prompt and answer, changes rarely and stays within bounds. */
static void the_window_grows_with_the_request(void **state)
{
	(void)state;
	assert_int_equal(window_with(0, 1), 4096);
	assert_int_equal(window_with(9000, 1000), 4096);
	assert_int_equal(window_with(9000, 4000), 8192);
	assert_int_equal(window_with(36000, 1000), 16384);
	assert_int_equal(window_with(140000, 1000), 65536);
	assert_int_equal(window_with(10 << 20, 1000), 131072);
	assert_int_equal(window_with(10, INT64_MAX), 131072);
}

/* A9: a turn's request begins with the bytes of the one before, so that prompt caches hit. */
static void turns_share_their_prefix(void **state)
{
	(void)state;
	check_prefixes(ollama);
}

static void reads_a_stream(void **state)
{
	struct outcome outcome = stream_of(
		ollama, LINE("{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"h\"}")
				LINE("{\"content\":\"\",\"thinking\":\"m\"}") "\r\n" LINE(
					"{\"content\":\"Hel\"}") LINE("{\"content\":\"lo\\u0000\"}")
					DONE "not looked at\n");
	struct llm_usage expected = {.input = 26, .output = 290};

	(void)state;
	assert_true(outcome.ok);
	assert_memory_equal(outcome.text, "Hello\0", 7);
	assert_string_equal(outcome.thinking, "hm");
	assert_true(outcome.reply.finished && outcome.reply.complete);
	assert_true(outcome.reply.usage_seen);
	assert_usage(&outcome.reply.usage, &expected);
	assert_string_equal(outcome.reply.model, "llama3.2");
	outcome_free(&outcome);
}

static void splits_do_not_matter(void **state)
{
	(void)state;
	check_splits(ollama, LINE("{\"content\":\"\xe2\x82\xac\",\"thinking\":\"t\"}") "\n" LINE(
				     "{\"content\":\"x\"}") DONE);
	check_splits(ollama, LINE("{\"content\":\"x\"}") "{\"error\":\"broken\"}");
}

/* The last line counts even where the server forgot to end it. */
static void the_last_line_may_be_open(void **state)
{
	struct outcome outcome = stream_of(
		ollama, LINE("{\"content\":\"a\"}") "{\"done\":true,\"done_reason\":\"length\"}");

	(void)state;
	assert_true(outcome.ok && outcome.reply.finished);
	assert_int_equal(outcome.reply.finish, LLM_FINISH_LENGTH);
	outcome_free(&outcome);
}

/* A4: an error as a line, while the status was 200. */
static void errors_inside_a_stream(void **state)
{
	struct outcome outcome = stream_of(
		ollama, LINE("{\"content\":\"a\"}") "{\"error\":\"an error was encountered\"}\n");
	struct outcome busy = stream_of(ollama, "{\"error\":\"server busy, please try again.  "
						"maximum pending requests exceeded\"}\n");

	(void)state;
	assert_false(outcome.ok);
	assert_int_equal(outcome.error.kind, RLMD_ERROR_OVERLOADED);
	assert_string_equal(outcome.error.text, "an error was encountered");
	assert_string_equal(outcome.text, "a");
	assert_int_equal(busy.error.kind, RLMD_ERROR_THROTTLED);
	outcome_free(&outcome);
	outcome_free(&busy);
}

/* A prompt served from the cache may go uncounted: what is known stays, and is marked. */
static void counts_may_be_missing(void **state)
{
	struct outcome cached = stream_of(ollama, "{\"done\":true,\"eval_count\":7}\n");
	struct outcome absurd = stream_of(
		ollama, "{\"done\":true,\"prompt_eval_count\":-1,\"eval_count\":\"x\"}\n");
	struct outcome endless = whole_of(
		ollama, "{\"message\":{\"content\":\"a\"},\"done\":true,"
			"\"prompt_eval_count\":1e400,\"eval_count\":9223372036854775808}");

	(void)state;
	assert_true(cached.ok && cached.reply.finished);
	assert_false(cached.reply.usage_seen);
	assert_int_equal(cached.reply.usage.input, 0);
	assert_int_equal(cached.reply.usage.output, 7);
	assert_false(cached.reply.usage_absurd);
	assert_false(absurd.reply.usage_seen);
	assert_int_equal(absurd.reply.usage.input, 0);
	assert_int_equal(absurd.reply.usage.output, 0);
	assert_true(absurd.reply.usage_absurd);
	assert_true(endless.ok && endless.reply.usage_absurd && !endless.reply.usage_seen);
	assert_string_equal(endless.text, "a");
	assert_int_equal(endless.reply.usage.input, 0);
	assert_int_equal(endless.reply.usage.output, 0);
	outcome_free(&cached);
	outcome_free(&absurd);
	outcome_free(&endless);
}

static void reads_a_whole_answer(void **state)
{
	struct outcome outcome = whole_of(
		ollama, "{\"model\":\"m\",\"message\":{\"content\":\"Hi\"},\"done\":true,"
			"\"done_reason\":\"stop\",\"prompt_eval_count\":3,\"eval_count\":1}\n");

	(void)state;
	assert_true(outcome.ok && outcome.reply.finished && outcome.reply.usage_seen);
	assert_string_equal(outcome.text, "Hi");
	outcome_free(&outcome);
}

/* ENG-1: a call of a tool that nobody offered is text. */
static void calls_of_tools(void **state)
{
	struct outcome outcome = whole_of(
		ollama, "{\"message\":{\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":"
			"\"python\",\"arguments\":{\"code\":\"a\\nb\"}}}]},\"done\":true}");

	(void)state;
	assert_true(outcome.ok);
	assert_string_equal(outcome.text, "\n[TOOL_CALLS]python[ARGS]{\"code\":\"a\\nb\"}");
	outcome_free(&outcome);
}

static void nonsense_is_refused(void **state)
{
	static const char *const bodies[] = {
		"", "[]", "{}", "{", "<html>", "{\"message\":{\"content\":\"a\"}}", "nil"};

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		struct outcome outcome = whole_of(ollama, bodies[i]);

		assert_false(outcome.ok);
		assert_int_equal(outcome.error.kind, RLMD_ERROR_BAD_REPLY);
		outcome_free(&outcome);
	}
}

/* LIB-18: OLLAMA_HOST as the server reads it, made an address that a client can use. */
static void hosts(void **state)
{
	static const char *const cases[][2] = {
		{"", "http://127.0.0.1:11434"},
		{"127.0.0.1", "http://127.0.0.1:11434"},
		{"gpu", "http://gpu:11434"},
		{"gpu:8080", "http://gpu:8080"},
		{":8080", "http://127.0.0.1:8080"},
		{"0.0.0.0", "http://127.0.0.1:11434"},
		{"0.0.0.0:8080", "http://127.0.0.1:8080"},
		{"[::]", "http://[::1]:11434"},
		{"[::]:8080", "http://[::1]:8080"},
		{"::", "http://[::1]:11434"},
		{"::1", "http://[::1]:11434"},
		{"fe80::1", "http://[fe80::1]:11434"},
		{"[fe80::1]:1", "http://[fe80::1]:1"},
		{"http://gpu", "http://gpu:80"},
		{"https://gpu", "https://gpu:443"},
		{"HTTPS://gpu:1", "https://gpu:1"},
		{"http://gpu:11434/", "http://gpu:11434"},
		{"gpu/behind/a/proxy//", "http://gpu:11434/behind/a/proxy"},
		{"ollama.com", "https://ollama.com:443"},
		{" gpu ", "http://gpu:11434"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_base_url(ollama, cases[i][0], cases[i][1]);
	assert_base_url(ollama, ollama->default_base_url, ollama->default_base_url);
}

static void bad_hosts(void **state)
{
	static const char *const cases[] = {
		"ftp://gpu",
		"gpu:0",
		"gpu:65536",
		"gpu:http",
		"gpu:-1",
		"user:secret@gpu",
		"http://secret@gpu:1",
		"gpu\r\nX: y",
		"gpu/?secret",
		"g pu",
		"[::1]x:1/\"",
		"a:b@secret:1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rlmd_error error = {0};
		char *url = ollama->base_url(cases[i], &error);

		if (url)
			fail_msg("'%s' became '%s'", cases[i], url);
		assert_int_equal(error.kind, RLMD_ERROR_USAGE);
		if (strchr(cases[i], '@'))
			assert_null(strstr(error.text, "secret"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_it_needs),
		cmocka_unit_test(the_window_grows_with_the_request),
		cmocka_unit_test(turns_share_their_prefix),
		cmocka_unit_test(reads_a_stream),
		cmocka_unit_test(splits_do_not_matter),
		cmocka_unit_test(the_last_line_may_be_open),
		cmocka_unit_test(errors_inside_a_stream),
		cmocka_unit_test(counts_may_be_missing),
		cmocka_unit_test(reads_a_whole_answer),
		cmocka_unit_test(calls_of_tools),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(hosts),
		cmocka_unit_test(bad_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
