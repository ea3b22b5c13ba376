#include "llm/llm.h"

#include <event2/buffer.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/loop.h"
#include "one.h"
#include "server.h"

static const char key[] = "sk-secret-0123456789";
static const char prices[] = "{\"openai/other/named\": {\"input_cost_per_token\": 1e-6, "
			     "\"output_cost_per_token\": 2e-6, \"max_output_tokens\": 7}, "
			     "\"gpt-test\": {\"input_cost_per_token\": 1e-6, "
			     "\"output_cost_per_token\": 2e-6, \"max_output_tokens\": 64000}, "
			     "\"gpt-cached\": {\"input_cost_per_token\": 1e-6, "
			     "\"output_cost_per_token\": 2e-6, "
			     "\"cache_creation_input_token_cost\": 5e-7, "
			     "\"input_cost_per_token_above_200k_tokens\": 2e-6, "
			     "\"cache_creation_input_token_cost_above_200k_tokens\": 3e-6}}";
static const char hello_whole[] =
	"{\"model\":\"gpt-test-1\",\"choices\":[{\"message\":{\"content\":\"hello\"},"
	"\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3}}";
static const char hello_stream[] =
	"data: {\"model\":\"gpt-test-1\",\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n"
	": keep-alive\n\n"
	"data: {\"choices\":[{\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\n"
	"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3}}\n\n"
	"data: [DONE]\n\n";
static const char half_stream[] =
	"data: {\"choices\":[{\"delta\":{\"content\":\"a half answer\"}}]}\n\n";
/* Errors in these tests ask for a short wait, so that nothing sleeps. */
static const char soon[] = "retry-after-ms: 1\r\n";

enum { TIME_MS = 100000 }; /* of a call */

static struct event_base *base;
static struct one one;
static struct server *server;
static char price_path[64], base_url[128];

struct outcome {
	struct llm_call *call;
	bool done;
	struct rlmd_error error; /* RLMD_ERROR_NONE: success */
	char text[256];
	size_t size; /* of the text */
	bool overlong;
	struct llm_usage usage;
	enum llm_finish finish;
	bool cost_known;
	int64_t cost;
	int attempts;
	char model[64];
	size_t *finished;
	struct llm_message messages[2]; /* of the request */
};

static void on_answer(void *owner, const struct llm_response *response,
		      const struct rlmd_error *err)
{
	struct outcome *outcome = owner;

	assert_false(outcome->done);
	outcome->call = NULL;
	outcome->done = true;
	if (err)
		outcome->error = *err;
	snprintf(outcome->text, sizeof outcome->text, "%.*s", (int)response->text.size,
		 response->text.bytes ? response->text.bytes : "");
	outcome->size = response->text.size;
	outcome->overlong = response->overlong;
	outcome->usage = response->usage;
	outcome->finish = response->finish;
	outcome->cost_known = response->cost_known;
	outcome->cost = response->cost;
	outcome->attempts = response->attempts;
	snprintf(outcome->model, sizeof outcome->model, "%s", response->model);
	if (outcome->finished)
		++*outcome->finished;
}

static struct rlmd_provider_options config_of(const char *provider)
{
	return (struct rlmd_provider_options){
		.kind = provider, .model = "gpt-test", .price_table = price_path, .max_retries = 2};
}

static struct llm *new_llm(const struct rlmd_provider_options *config)
{
	struct rlmd_error err = {0};

	if (!one_open(&one, base, config, NULL, &err))
		fail_msg("%s", err.text);
	return one.llm;
}

static void free_llm(struct llm *llm)
{
	assert_ptr_equal(llm, one.llm);
	one_close(&one);
}

static void start_asking(struct outcome *outcome, struct llm *llm, const char *prompt,
			 int64_t max_tokens)
{
	struct llm_request request = {.messages = outcome->messages,
				      .message_count = 2,
				      .max_tokens = max_tokens,
				      .deadline = clock_ms() + TIME_MS,
				      .kind = LLM_QUERY};

	outcome->messages[0] = (struct llm_message){LLM_SYSTEM, text_of("be brief")};
	outcome->messages[1] = (struct llm_message){LLM_USER, text_of(prompt)};
	outcome->call = llm_start(llm, &request, on_answer, outcome);
	assert_false(outcome->done);
}

static void start_prompt(struct outcome *outcome, struct llm *llm, const char *prompt)
{
	start_asking(outcome, llm, prompt, 100);
}

static struct outcome ask_for(struct llm *llm, const char *prompt, int64_t max_tokens)
{
	struct outcome outcome = {0};

	start_asking(&outcome, llm, prompt, max_tokens);
	run_until(base, &outcome.done);
	return outcome;
}

static struct outcome ask(struct llm *llm, const char *prompt)
{
	return ask_for(llm, prompt, 100);
}

static int setup(void **state)
{
	int fd;

	(void)state;
	strcpy(price_path, "/tmp/rlmd-prices-XXXXXX");
	fd = mkstemp(price_path);
	if (fd < 0 || write(fd, prices, strlen(prices)) < 0 || close(fd))
		return -1;
	base = event_base_new();
	server = server_new(base);
	snprintf(base_url, sizeof base_url, "%s/v1", server->url);
	setenv("OPENAI_BASE_URL", base_url, 1);
	setenv("OPENAI_API_KEY", key, 1);
	setenv("ANTHROPIC_BASE_URL", server->url, 1);
	setenv("ANTHROPIC_API_KEY", key, 1);
	setenv("OLLAMA_HOST", server->url, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	server_free(server);
	event_base_free(base);
	return unlink(price_path);
}

static void assert_hello(const struct outcome *outcome)
{
	assert_int_equal(outcome->error.kind, RLMD_ERROR_NONE);
	assert_string_equal(outcome->text, "hello");
	assert_int_equal(outcome->usage.input, 10);
	assert_int_equal(outcome->usage.output, 3);
	assert_false(outcome->usage.estimated);
	assert_true(outcome->cost_known);
	assert_int_equal(outcome->cost, 16000000); /* 10 * 1e-6 + 3 * 2e-6 dollars */
	assert_string_equal(outcome->model, "gpt-test-1");
}

/* A streamed answer, split at every byte: text, usage and exact cost (LIB-20, LIB-21). */
static void test_stream(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct outcome outcome;

	(void)state;
	server_sse(server, hello_stream, 1);
	outcome = ask(llm, "hi");
	assert_hello(&outcome);
	assert_int_equal(outcome.attempts, 1);
	assert_true(text_starts(text_of(server->last), "POST /v1/chat/completions HTTP/1.1\r\n"));
	assert_non_null(strstr(server->last, "\r\nAuthorization: Bearer sk-secret-0123456789\r\n"));
	assert_non_null(strstr(server->last, "\"stream\":true"));
	free_llm(llm);
}

/* A whole answer, because it was asked for, or because the server answers so anyway. */
static void test_whole(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct outcome outcome;
	struct llm *llm;

	(void)state;
	server_json(server, 200, "", hello_whole);
	llm = new_llm(&config);
	outcome = ask(llm, "hi");
	assert_hello(&outcome);
	free_llm(llm);

	config.no_stream = true;
	setenv("OPENAI_API_KEY", key, 1);
	llm = new_llm(&config);
	outcome = ask(llm, "hi");
	assert_hello(&outcome);
	assert_null(strstr(server->last, "\"stream\":true"));
	free_llm(llm);
}

/* The other providers' formats and paths; a local model costs nothing (LIB-18, LIB-19). */
static void test_other_providers(void **state)
{
	struct rlmd_provider_options config = config_of("ollama");
	struct outcome outcome;
	struct llm *llm;

	(void)state;
	server_stream(server, "application/x-ndjson",
		      "{\"message\":{\"content\":\"hello\"},\"done\":false}\n"
		      "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"length\","
		      "\"prompt_eval_count\":10,\"eval_count\":3}\n",
		      5);
	llm = new_llm(&config);
	outcome = ask(llm, "hi");
	assert_string_equal(outcome.error.text, "");
	assert_string_equal(outcome.text, "hello");
	assert_int_equal(outcome.finish, LLM_FINISH_LENGTH);
	assert_int_equal(outcome.usage.output, 3);
	assert_true(outcome.cost_known);
	assert_int_equal(outcome.cost, 0);
	assert_true(text_starts(text_of(server->last), "POST /api/chat HTTP/1.1\r\n"));
	free_llm(llm);

	config.kind = "anthropic";
	server_json(
		server, 200, "",
		"{\"type\":\"message\",\"model\":\"gpt-test-1\",\"content\":[{\"type\":\"text\","
		"\"text\":\"hello\"}],\"stop_reason\":\"end_turn\","
		"\"usage\":{\"input_tokens\":10,\"output_tokens\":3}}");
	llm = new_llm(&config);
	outcome = ask(llm, "hi");
	assert_hello(&outcome);
	assert_non_null(strstr(server->last, "\r\nx-api-key: sk-secret-0123456789\r\n"));
	assert_non_null(strstr(server->last, "\r\nanthropic-version: "));
	free_llm(llm);
}

/* An overloaded or throttling server is asked again; the caller sees one call. */
static void test_retry(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct outcome outcome;

	(void)state;
	server_json(server, 503, soon, "{\"error\":{\"message\":\"busy\"}}");
	server_json(server, 429, soon,
		    "{\"error\":{\"message\":\"slow down\",\"code\":\"rate_limit_exceeded\"}}");
	server_sse(server, hello_stream, 0);
	outcome = ask(llm, "hi");
	assert_hello(&outcome);
	assert_int_equal(outcome.attempts, 3);
	free_llm(llm);
}

/* The last failure is what the caller learns, with status, words, and the number of attempts. */
static void test_gives_up(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct outcome outcome;

	(void)state;
	server_json(server, 503, soon, "{\"error\":{\"message\":\"all busy\"}}");
	outcome = ask(llm, "hi");
	assert_int_equal(outcome.error.kind, RLMD_ERROR_OVERLOADED);
	assert_int_equal(outcome.error.http_status, 503);
	assert_non_null(strstr(outcome.error.text, "all busy"));
	assert_non_null(strstr(outcome.error.text, "gave up after 3 attempts"));
	assert_int_equal(server->requests, 3);
	assert_int_equal(outcome.usage.input, 0);
	free_llm(llm);
}

/* A refused key ends this call at once and every later one without a request; it is not shown. */
static void test_breaker_and_redaction(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct outcome outcome;

	(void)state;
	server_json(server, 401, "",
		    "{\"error\":{\"message\":\"Incorrect API key provided: sk-secret-0123456789, "
		    "really sk-secret-0123456789.\",\"code\":\"invalid_api_key\"}}");
	outcome = ask(llm, "hi");
	assert_int_equal(outcome.error.kind, RLMD_ERROR_AUTH);
	assert_int_equal(outcome.error.http_status, 401);
	assert_non_null(strstr(outcome.error.text, "provided: ***, really ***."));
	assert_null(strstr(outcome.error.text, "sk-secret"));
	outcome = ask(llm, "hi");
	assert_int_equal(outcome.error.kind, RLMD_ERROR_AUTH);
	assert_int_equal(server->requests, 1);
	free_llm(llm);
}

/* The key is redacted in an error within a stream, too. */
static void test_redaction_in_stream(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm;
	struct outcome outcome;

	(void)state;
	config.max_retries = 0;
	llm = new_llm(&config);
	server_sse(server,
		   "data: {\"error\":{\"message\":\"upstream refused sk-secret-0123456789\","
		   "\"code\":502}}\n\n",
		   0);
	outcome = ask(llm, "hi");
	assert_int_equal(outcome.error.kind, RLMD_ERROR_OVERLOADED);
	assert_non_null(strstr(outcome.error.text, "upstream refused ***"));
	free_llm(llm);
}

/* ... and in what a server says of a model, or why it refuses. */
static void test_redaction_beside_the_text(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct outcome outcome;

	(void)state;
	server_json(server, 200, "",
		    "{\"model\":\"for-sk-secret-0123456789\",\"choices\":[{\"message\":{"
		    "\"content\":null,\"refusal\":\"Not with sk-secret-0123456789.\"},"
		    "\"finish_reason\":\"stop\"}],"
		    "\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3}}");
	outcome = ask(llm, "hi");
	assert_int_equal(outcome.error.kind, RLMD_ERROR_REFUSED);
	assert_non_null(strstr(outcome.error.text, "Not with ***."));
	assert_string_equal(outcome.model, "for-***");
	free_llm(llm);
}

/* A parameter that a model refuses is adapted once, and remembered for the next call. */
static void test_quirk(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct outcome outcome;

	(void)state;
	server_json(server, 400, "",
		    "{\"error\":{\"message\":\"Unrecognized request argument supplied: "
		    "stream_options\",\"type\":\"invalid_request_error\",\"param\":null}}");
	server_json(server, 200, "", hello_whole);
	outcome = ask(llm, "hi");
	assert_hello(&outcome);
	assert_int_equal(outcome.attempts, 2);
	assert_null(strstr(server->last, "stream_options"));
	outcome = ask(llm, "again");
	assert_int_equal(outcome.attempts, 1);
	assert_null(strstr(server->last, "stream_options"));
	free_llm(llm);
}

/* The most that the model can give is asked for instead, and of the next call at once: the engine
 * asks for it.
 */
static void test_less_output(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct outcome outcome;

	(void)state;
	server_json(server, 400, "",
		    "{\"error\":{\"message\":\"max_tokens is too large: 1000. This model supports "
		    "at most 400 completion tokens, whereas you provided 1000.\",\"type\":"
		    "\"invalid_request_error\",\"param\":\"max_tokens\",\"code\":null}}");
	server_json(server, 200, "", hello_whole);
	outcome = ask_for(llm, "hi", 1000);
	assert_hello(&outcome);
	assert_int_equal(outcome.attempts, 2);
	assert_non_null(strstr(server->last, "\"max_completion_tokens\":400"));
	assert_int_equal(llm_room(llm, NULL).output, 400);
	assert_int_equal(llm_room(llm, "another").output, 0);
	free_llm(llm);
}

/* A server that tells another size each time is asked no more than so often. */
static void test_less_output_without_end(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct outcome outcome;

	(void)state;
	server_json(
		server, 400, "",
		"{\"error\":{\"message\":\"This model's maximum context length is 1200 tokens.\","
		"\"code\":\"context_length_exceeded\"}}");
	outcome = ask_for(llm, "hi", 1000);
	assert_int_equal(outcome.error.kind, RLMD_ERROR_CONTEXT_OVERFLOW);
	assert_in_range(server->requests, 2, 4);
	free_llm(llm);
}

/* A server that refuses whatever is sent gets no more than one adaptation of each kind. */
static void test_quirk_without_end(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct outcome outcome;

	(void)state;
	server_json(server, 400, "",
		    "{\"error\":{\"message\":\"Unsupported parameter: 'stream_options'\","
		    "\"param\":\"stream_options\",\"code\":\"unsupported_parameter\"}}");
	outcome = ask(llm, "hi");
	assert_int_equal(outcome.error.kind, RLMD_ERROR_BAD_REQUEST);
	assert_int_equal(server->requests, 2);
	free_llm(llm);
}

/* Nonsense is asked about once more; then the error shows what came and says what to check. */
static void test_nonsense(void **state)
{
	static const struct {
		const char *type, *body, *shown;
	} cases[] = {
		{"text/html", "<html><body>Sign in\033[2J</body></html>",
		 "<html><body>Sign in\\x1b"},
		{"application/json", "{\"choices\": [{\"mess", "{\"choices\": [{\"mess"},
		{"application/json", "", "it was empty"},
		{"text/event-stream", "", "it was empty"},
		{"text/event-stream", "data: }{\n\n", "data: }{"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rlmd_provider_options config = config_of("openai");
		size_t before = server->requests;
		struct outcome outcome;
		struct llm *llm;
		char *raw = xasprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%sContent-Length: "
				      "%zu\r\n\r\n%s",
				      cases[i].type, soon, strlen(cases[i].body), cases[i].body);

		setenv("OPENAI_API_KEY", key, 1);
		llm = new_llm(&config);
		server_answer(server, raw, SERVER_KEEP, 0);
		outcome = ask(llm, "hi");
		assert_int_equal(outcome.error.kind, RLMD_ERROR_BAD_REPLY);
		if (!strstr(outcome.error.text, cases[i].shown))
			fail_msg("%s", outcome.error.text);
		assert_non_null(strstr(outcome.error.text, "base URL"));
		assert_int_equal(server->requests - before, 2);
		free_llm(llm);
		free(raw);
	}
}

/* Megabytes of nonsense are not asked for twice. */
static void test_huge_nonsense(void **state)
{
	enum { SIZE = 5 << 20 };
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	char *huge = xcalloc(SIZE + 1, 1);
	struct outcome outcome;

	(void)state;
	memset(huge, 'x', SIZE);
	server_sse(server, huge, 0);
	outcome = ask(llm, "hi");
	assert_int_equal(outcome.error.kind, RLMD_ERROR_BAD_REPLY);
	assert_int_equal(server->requests, 1);
	free_llm(llm);
	free(huge);
}

/* A stream cut in the middle is a failure, asked again; what it had cost is estimated and added. */
static void test_cut_stream(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct outcome outcome;
	char *cut = xasprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%s"
			      "Transfer-Encoding: chunked\r\n\r\n%zx\r\n%s",
			      soon, strlen(half_stream) + 99, half_stream);

	(void)state;
	server_answer(server, cut, SERVER_CLOSE, 0);
	server_sse(server, hello_stream, 0);
	outcome = ask(llm, "hi");
	assert_int_equal(outcome.error.kind, RLMD_ERROR_NONE);
	assert_string_equal(outcome.text, "hello");
	assert_int_equal(outcome.attempts, 2);
	assert_true(outcome.usage.estimated);
	assert_true(outcome.usage.input > 10);
	assert_true(outcome.usage.output > 3);
	free_llm(llm);
	free(cut);
}

/* The arguments of may_retry, and its answer. */
static struct {
	bool answer;
	size_t asked;
	void *owner;
	struct llm_usage so_far;
	int64_t cost;
} permission;

static bool on_retry(void *owner, const struct llm_usage *so_far, int64_t cost_so_far)
{
	permission.asked++;
	permission.owner = owner;
	permission.so_far = *so_far;
	permission.cost = cost_so_far;
	return permission.answer;
}

static void ask_with_permission(struct outcome *outcome, struct llm *llm, bool answer)
{
	struct llm_message message = {LLM_USER, text_of("hi")};
	struct llm_request request = {.messages = &message,
				      .message_count = 1,
				      .max_tokens = 100,
				      .deadline = clock_ms() + TIME_MS,
				      .may_retry = on_retry};

	memset(&permission, 0, sizeof permission);
	permission.answer = answer;
	*outcome = (struct outcome){0};
	outcome->call = llm_start(llm, &request, on_answer, outcome);
	run_until(base, &outcome->done);
}

/* The one who pays decides whether a billed attempt is followed by another: told what it came to,
 * and on a no the call ends with the attempt's error and its bill. */
static void test_retry_needs_permission(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct outcome outcome;

	(void)state;
	server_sse(server, half_stream, 0);
	ask_with_permission(&outcome, llm, false);
	assert_int_equal(outcome.error.kind, RLMD_ERROR_NETWORK);
	assert_non_null(strstr(outcome.error.text, "before its answer's end"));
	assert_int_equal(outcome.attempts, 1);
	assert_int_equal(permission.asked, 1);
	assert_ptr_equal(permission.owner, &outcome);
	assert_true(permission.so_far.output > 0);
	assert_true(permission.cost > 0);
	assert_int_equal(permission.cost, outcome.cost);
	assert_int_equal(permission.so_far.input, outcome.usage.input);
	free_llm(llm);
}

/* ... and on a yes the call goes on, its bill the sum. */
static void test_retry_with_permission(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct outcome outcome;
	char *cut = xasprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%s"
			      "Transfer-Encoding: chunked\r\n\r\n%zx\r\n%s",
			      soon, strlen(half_stream) + 99, half_stream);

	(void)state;
	server_answer(server, cut, SERVER_CLOSE, 0);
	server_sse(server, hello_stream, 0);
	ask_with_permission(&outcome, llm, true);
	assert_string_equal(outcome.text, "hello");
	assert_int_equal(outcome.attempts, 2);
	assert_int_equal(permission.asked, 1);
	assert_int_equal(outcome.usage.input, permission.so_far.input + 10);
	free_llm(llm);
	free(cut);
}

/* An attempt that cost nothing leaves all of the reservation: nobody is asked. */
static void test_free_retry_asks_nobody(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct outcome outcome;

	(void)state;
	server_json(server, 503, soon, "{\"error\":{\"message\":\"busy\"}}");
	server_sse(server, hello_stream, 0);
	ask_with_permission(&outcome, llm, false);
	assert_int_equal(outcome.error.kind, RLMD_ERROR_NONE);
	assert_int_equal(outcome.attempts, 2);
	assert_int_equal(permission.asked, 0);
	free_llm(llm);
}

/* ... and so is one that ends properly, but without its end. */
static void test_unfinished_stream(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct outcome outcome;
	struct llm *llm;

	(void)state;
	config.max_retries = 0;
	llm = new_llm(&config);
	server_sse(server, half_stream, 0);
	outcome = ask(llm, "hi");
	assert_int_equal(outcome.error.kind, RLMD_ERROR_NETWORK);
	assert_true(outcome.usage.estimated);
	assert_true(outcome.usage.output > 0);
	assert_true(outcome.cost > 0);
	free_llm(llm);
}

/* The end of the answer ends the call, though the connection stays silent after it. */
static void test_no_end_of_body(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	int64_t started = clock_ms();
	struct outcome outcome;
	char *raw = xasprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n%s",
			      hello_stream);

	(void)state;
	server_answer(server, raw, SERVER_HOLD, 0);
	outcome = ask(llm, "hi");
	assert_hello(&outcome);
	assert_true(clock_ms() - started < TIME_MS / 2); /* long before its time is over */
	free_llm(llm);
	free(raw);
}

/* Without usage from the provider it is estimated and marked; without a price the cost is
 * unknown, never guessed, and said once. */
static void test_missing_usage_and_price(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct outcome outcome;
	json_t *warnings;
	struct llm *llm;
	int64_t cost;

	(void)state;
	config.model = "model-without-price";
	llm = new_llm(&config);
	json_decref(llm_take_warnings(llm));
	llm_warn_unpriced(llm, "model-without-price");
	server_json(server, 200, "",
		    "{\"choices\":[{\"message\":{\"content\":\"hello\"},\"finish_reason\":"
		    "\"stop\"}]}");
	outcome = ask(llm, "hi");
	outcome = ask(llm, "hi");
	assert_int_equal(outcome.error.kind, RLMD_ERROR_NONE);
	assert_true(outcome.usage.estimated);
	assert_true(outcome.usage.input > 0 && outcome.usage.output > 0);
	assert_false(outcome.cost_known);
	assert_int_equal(outcome.cost, 0);
	assert_string_equal(outcome.model, "model-without-price");
	assert_false(llm_price(llm, NULL, 10, 10, &cost));
	warnings = llm_take_warnings(llm);
	assert_int_equal(json_array_size(warnings), 1);
	assert_non_null(strstr(json_string_value(json_array_get(warnings, 0)), "price-table"));
	json_decref(warnings);
	warnings = llm_take_warnings(llm);
	assert_int_equal(json_array_size(warnings), 0);
	json_decref(warnings);
	free_llm(llm);
}

#define COUNTED(input, output)                                                                     \
	"{\"model\":\"gpt-test-1\",\"choices\":[{\"message\":{\"content\":\"hello\"},"             \
	"\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":" input                         \
	",\"completion_tokens\":" output "}}"

/* A count that nobody can believe is estimated, marked, paid for at the model's price, and told
 * once; so is a zero, which is what servers that don't count say, but without a word. */
static void test_absurd_usage(void **state)
{
	static const struct {
		const char *body;
		size_t warnings;
	} cases[] = {
		{COUNTED("0", "0"), 0},
		{COUNTED("0", "3"), 0},
		{COUNTED("10", "0"), 0},
		{COUNTED("-10", "3"), 1},
		{COUNTED("10", "1e400"), 1},
		{COUNTED("9223372036854775808", "1000000000000000000"), 1},
	};
	struct rlmd_provider_options config = config_of("openai");

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct llm *llm = new_llm(&config);
		struct outcome outcome;
		json_t *warnings;

		json_decref(llm_take_warnings(llm));
		server_json(server, 200, "", cases[i].body);
		server_json(server, 200, "", cases[i].body);
		outcome = ask(llm, "hi");
		outcome = ask(llm, "hi");
		assert_string_equal(outcome.text, "hello");
		assert_true(outcome.usage.estimated);
		assert_in_range(outcome.usage.input, 1, 20);
		assert_in_range(outcome.usage.output, 1, 20);
		assert_true(outcome.cost_known);
		assert_int_equal(outcome.cost,
				 outcome.usage.input * 1000000 + outcome.usage.output * 2000000);
		warnings = llm_take_warnings(llm);
		assert_int_equal(json_array_size(warnings), cases[i].warnings);
		json_decref(warnings);
		free_llm(llm);
	}
}

/* A refusal is an error of its own, billed all the same. */
static void test_refused(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct outcome outcome;

	(void)state;
	server_json(server, 200, "",
		    "{\"choices\":[{\"message\":{\"content\":null,\"refusal\":\"I will not.\"},"
		    "\"finish_reason\":\"stop\"}],"
		    "\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3}}");
	outcome = ask(llm, "hi");
	assert_int_equal(outcome.error.kind, RLMD_ERROR_REFUSED);
	assert_non_null(strstr(outcome.error.text, "I will not."));
	assert_int_equal(outcome.cost, 16000000);
	assert_int_equal(server->requests, 1);
	free_llm(llm);
}

/* An empty answer is an answer: whoever asked decides what to make of it. */
static void test_empty_text(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct outcome outcome;

	(void)state;
	server_json(server, 200, "",
		    "{\"choices\":[{\"message\":{\"content\":null},\"finish_reason\":\"length\"}],"
		    "\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":100}}");
	outcome = ask(llm, "hi");
	assert_int_equal(outcome.error.kind, RLMD_ERROR_NONE);
	assert_string_equal(outcome.text, "");
	assert_int_equal(outcome.finish, LLM_FINISH_LENGTH);
	free_llm(llm);
}

/* A local server that counted far fewer tokens than were sent has cut the prompt: say so. */
static void test_silent_truncation(void **state)
{
	struct rlmd_provider_options config = config_of("ollama");
	struct llm *llm = new_llm(&config);
	char *prompt = xcalloc(20001, 1);
	json_t *warnings;

	(void)state;
	for (int i = 0; i < 20000; i++)
		prompt[i] = "word "[i % 5];
	server_json(server, 200, "",
		    "{\"message\":{\"content\":\"hello\"},\"done\":true,\"done_reason\":\"stop\","
		    "\"prompt_eval_count\":1000,\"eval_count\":3}");
	json_decref(llm_take_warnings(llm));
	ask(llm, prompt);
	warnings = llm_take_warnings(llm);
	assert_int_equal(json_array_size(warnings), 1);
	assert_non_null(strstr(json_string_value(json_array_get(warnings, 0)), "context window"));
	json_decref(warnings);
	free_llm(llm);
	free(prompt);
}

/* ... and of a short one too; what templates add or leave out is no reason. */
static void test_truncation_of_a_short_prompt(void **state)
{
	static const struct {
		int words, counted;
		size_t warnings;
	} cases[] = {{850, 40, 1}, {850, 1100, 0}, {850, 700, 0}, {10, 1, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rlmd_provider_options config = config_of("ollama");
		struct llm *llm = new_llm(&config);
		struct evbuffer *prompt = evbuffer_new();
		char *text, *answer;
		json_t *warnings;

		for (int word = 0; word < cases[i].words; word++)
			evbuffer_add(prompt, "word ", 5);
		text = text_drain(prompt, NULL);
		answer = xasprintf("{\"message\":{\"content\":\"hello\"},\"done\":true,"
				   "\"prompt_eval_count\":%d,\"eval_count\":3}",
				   cases[i].counted);
		server_json(server, 200, "", answer);
		json_decref(llm_take_warnings(llm));
		ask(llm, text);
		warnings = llm_take_warnings(llm);
		assert_int_equal(json_array_size(warnings), cases[i].warnings);
		json_decref(warnings);
		evbuffer_free(prompt);
		free(text);
		free(answer);
		free_llm(llm);
	}
}

#define WORDS                                                                                      \
	"data: {\"model\":\"gpt-test-1\",\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\n"
#define FINISH "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}"
#define USAGE  "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3}}"

/* Servers that leave out how a stream ends: what it said is whole, and is paid for once. */
static void test_streams_without_their_end(void **state)
{
	static const char *const streams[] = {
		WORDS FINISH "\n\n" USAGE "\n\n",
		WORDS FINISH "\n\n" USAGE "\n",
		WORDS FINISH "\n\n" USAGE,
		WORDS USAGE "\n\n" FINISH,
		WORDS FINISH "\n\n" USAGE "\n\ndata: [DONE]\n",
		WORDS FINISH "\n\n" USAGE "\n\ndata: [DONE]",
		WORDS FINISH "\n\n" USAGE "\n\ndata: {\"choi",
	};
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);

	(void)state;
	for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
		char *cut = xasprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
				      "Transfer-Encoding: chunked\r\n\r\n%zx\r\n%s\r\n",
				      strlen(streams[i]), streams[i]);
		size_t before = server->requests;
		struct outcome outcome;

		server_sse(server, streams[i], 0);
		outcome = ask(llm, "hi");
		assert_hello(&outcome);
		server_answer(server, cut, SERVER_CLOSE, 0);
		outcome = ask(llm, "hi");
		assert_hello(&outcome);
		assert_int_equal(server->requests - before, 2);
		free(cut);
	}
	free_llm(llm);
}

/* A model that does not stop where it was told to: clearly beyond it the answer is cut, used as far
 * as it came, and estimated; nobody waits for an end that does not come. */
static void test_overlong_stream(void **state)
{
	enum { EVENTS = 300 }; /* of two words each; 100 tokens are asked for */
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct evbuffer *raw = evbuffer_new();
	struct outcome outcome;
	char *bytes;

	(void)state;
	evbuffer_add_printf(raw, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
	for (int i = 0; i < EVENTS; i++)
		evbuffer_add_printf(raw,
				    "data: {\"choices\":[{\"delta\":{\"content\":\"word by \"}}"
				    "]}\n\n");
	bytes = text_drain(raw, NULL);
	server_answer(server, bytes, SERVER_HOLD, 0);
	outcome = ask(llm, "hi");
	assert_int_equal(outcome.error.kind, RLMD_ERROR_NONE);
	assert_int_equal(outcome.attempts, 1);
	assert_int_equal(outcome.finish, LLM_FINISH_LENGTH);
	assert_true(outcome.overlong);
	assert_true(text_starts(text_of(outcome.text), "word by word by "));
	assert_in_range(outcome.size, 4 * (100 + 25 + 64), 4 * (100 + 25 + 64) + 16);
	assert_true(outcome.usage.estimated);
	assert_in_range(outcome.usage.output, 100 + 25 + 64, 2 * (100 + 25 + 64));
	assert_int_equal(server->requests, 1);
	run_until_count(base, &server->left, 1);
	evbuffer_free(raw);
	free(bytes);
	free_llm(llm);
}

/* A whole answer is paid for as a whole, and handed on as far as it was asked for. */
static void test_overlong_whole(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct evbuffer *body = evbuffer_new();
	struct outcome outcome;
	char *bytes;

	(void)state;
	evbuffer_add_printf(body, "{\"choices\":[{\"message\":{\"content\":\"");
	for (int i = 0; i < 5000; i++)
		evbuffer_add_printf(body, "word ");
	evbuffer_add_printf(body, "\"},\"finish_reason\":\"stop\"}],"
				  "\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5000}}");
	bytes = text_drain(body, NULL);
	server_json(server, 200, "", bytes);
	outcome = ask(llm, "hi");
	assert_int_equal(outcome.error.kind, RLMD_ERROR_NONE);
	assert_int_equal(outcome.finish, LLM_FINISH_LENGTH);
	assert_true(outcome.overlong);
	assert_in_range(outcome.size, 5 * (100 + 25 + 64), 5 * (100 + 25 + 64) + 256);
	assert_false(outcome.usage.estimated);
	assert_int_equal(outcome.usage.output, 5000);
	evbuffer_free(body);
	free(bytes);
	free_llm(llm);
}

static struct {
	struct event *turn;
	size_t bytes, most, pieces, turns, unturned;
	bool turned;
} taken;

static void on_turn(evutil_socket_t fd, short what, void *owner)
{
	(void)fd, (void)what, (void)owner;
	taken.turns++;
	taken.turned = true;
	loop_post(taken.turn);
}

static void on_piece(void *owner, struct rlmd_text more)
{
	(void)owner;
	taken.bytes += more.size;
	taken.most = more.size > taken.most ? more.size : taken.most;
	taken.pieces++;
	taken.unturned += !taken.turned;
	taken.turned = false;
}

/* A whole answer of megabytes is taken in parts, between which others have their turn;
 * nobody counted its tokens. */
static void test_large_whole(void **state)
{
	enum { LINES = 100000, MOST = 256 << 10 };
	struct rlmd_provider_options config = config_of("openai");
	struct llm_request request = {.message_count = 2,
				      .deadline = clock_ms() + 6 * (int64_t)TIME_MS,
				      .on_delta = on_piece,
				      .kind = LLM_QUERY};
	struct evbuffer *body = evbuffer_new(), *text = evbuffer_new();
	struct outcome outcome = {0};
	struct llm *llm;
	char *bytes;

	(void)state;
	evbuffer_add_printf(body, "{\"choices\":[{\"message\":{\"content\":\"");
	for (int i = 0; i < LINES; i++) {
		evbuffer_add_printf(body, "line %d of \\\"them\\\"\\n", i);
		evbuffer_add_printf(text, "line %d of \"them\"\n", i);
	}
	evbuffer_add_printf(body, "\"},\"finish_reason\":\"stop\"}]}");
	bytes = text_drain(body, NULL);
	server_json(server, 200, "", bytes);
	config.no_stream = true;
	llm = new_llm(&config);
	outcome.messages[0] = (struct llm_message){LLM_SYSTEM, text_of("be brief")};
	outcome.messages[1] = (struct llm_message){LLM_USER, text_of("hi")};
	request.messages = outcome.messages;
	memset(&taken, 0, sizeof taken);
	taken.turned = true;
	taken.turn = evtimer_new(base, on_turn, NULL);
	loop_post(taken.turn);
	outcome.call = llm_start(llm, &request, on_answer, &outcome);
	run_until(base, &outcome.done);
	assert_int_equal(outcome.error.kind, RLMD_ERROR_NONE);
	assert_int_equal(outcome.size, evbuffer_get_length(text));
	assert_int_equal(taken.bytes, outcome.size);
	assert_in_range(taken.most, 1, MOST);
	assert_true(taken.pieces >= outcome.size / MOST);
	assert_true(taken.unturned <= 1); /* the last one is told with the end */
	assert_true(outcome.usage.estimated);
	assert_int_equal(outcome.usage.output, text_tokens(text_in(text)));
	event_free(taken.turn);
	evbuffer_free(body);
	evbuffer_free(text);
	free(bytes);
	free_llm(llm);
}

/* Half a last event is no answer: one that has not said that it is complete is asked for again. */
static void test_streams_that_were_cut(void **state)
{
	static const char *const streams[] = {WORDS,
					      WORDS "data: {\"choices\":[{\"delta\":{},\"fin"};
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm;

	(void)state;
	config.max_retries = 0;
	llm = new_llm(&config);
	for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
		struct outcome outcome;

		server_sse(server, streams[i], 0);
		outcome = ask(llm, "hi");
		assert_int_equal(outcome.error.kind, RLMD_ERROR_NETWORK);
		assert_non_null(strstr(outcome.error.text, "before its answer's end"));
	}
	free_llm(llm);
}

/* Cancelling closes the transfer, calls nobody back, and tells what was spent, estimated. */
static void test_cancel(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct outcome outcome = {0};
	struct llm_usage usage;
	int64_t cost;
	char *raw = xasprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n%s",
			      half_stream);

	(void)state;
	server_answer(server, raw, SERVER_HOLD, 0);
	start_prompt(&outcome, llm, "hi");
	run_until_count(base, &server->holding, 1);
	for (int i = 0; i < 5; i++)
		event_base_loop(base, EVLOOP_NONBLOCK);
	llm_cancel(outcome.call, &usage, &cost);
	run_until_count(base, &server->left, 1);
	assert_false(outcome.done);
	assert_true(usage.estimated);
	assert_true(usage.input > 0 && usage.output > 0);
	assert_int_equal(cost, usage.input * 1000000 + usage.output * 2000000);

	start_prompt(&outcome, llm, "hi");
	llm_cancel(outcome.call, &usage, &cost);
	assert_int_equal(usage.input, 0);
	assert_int_equal(cost, 0);
	free_llm(llm);
	free(raw);
}

/* Cancelled after any number of events, through retries and all, a call leaves nothing. */
static void test_cancel_sweep(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	bool complete = false;

	(void)state;
	for (int n = 0; !complete; n++) {
		struct outcome outcome = {0};
		struct llm *llm;

		server_free(server);
		server = server_new(base);
		snprintf(base_url, sizeof base_url, "%s/v1", server->url);
		setenv("OPENAI_BASE_URL", base_url, 1);
		setenv("OPENAI_API_KEY", key, 1);
		llm = new_llm(&config);
		server_json(server, 503, soon, "{}");
		server_sse(server, hello_stream, 64);
		start_prompt(&outcome, llm, "hi");
		for (int i = 0; i < n && !outcome.done; i++)
			event_base_loop(base, EVLOOP_ONCE);
		complete = outcome.done;
		if (!complete)
			llm_cancel(outcome.call, NULL, NULL);
		free_llm(llm);
	}
}

/* The call's deadline ends it, whatever the server does. */
static void test_deadline(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	struct outcome outcome = {0};
	struct llm_message message = {LLM_USER, text_of("hi")};
	struct llm_request request = {.messages = &message,
				      .message_count = 1,
				      .max_tokens = 10,
				      .deadline = clock_ms() + 50};

	(void)state;
	server_answer(server, "HTTP/1.1 200 OK\r\n", SERVER_HOLD, 0);
	outcome.call = llm_start(llm, &request, on_answer, &outcome);
	run_until(base, &outcome.done);
	assert_int_equal(outcome.error.kind, RLMD_ERROR_TIMEOUT);
	assert_int_equal(outcome.attempts, 1);
	assert_true(outcome.usage.estimated);
	assert_true(outcome.usage.input > 0);
	request.deadline = clock_ms() - 1;
	outcome = (struct outcome){0};
	outcome.call = llm_start(llm, &request, on_answer, &outcome);
	run_until(base, &outcome.done);
	assert_int_equal(outcome.error.kind, RLMD_ERROR_TIMEOUT);
	assert_int_equal(outcome.attempts, 0);
	free_llm(llm);
}

/* Many calls at once, each with its own answer. */
static void test_many(void **state)
{
	enum { MANY = 300 };
	static struct outcome outcomes[MANY];
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	size_t finished = 0;

	(void)state;
	memset(outcomes, 0, sizeof outcomes);
	server_sse(server, hello_stream, 200);
	for (int i = 0; i < MANY; i++) {
		outcomes[i].finished = &finished;
		start_prompt(&outcomes[i], llm, "hi");
	}
	run_until_count(base, &finished, MANY);
	for (int i = 0; i < MANY; i++)
		assert_hello(&outcomes[i]);
	free_llm(llm);
}

/* An environment's key goes to the provider, or to where the environment says, and not to a base
 * URL given elsewhere; a key file goes there. */
static void test_key_is_bound(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct server *other = server_new(base);
	char key_path[] = "/tmp/rlmd-key-XXXXXX";
	int fd = mkstemp(key_path);
	struct llm *llm;

	(void)state;
	assert_int_equal(write(fd, "from-the-file\n", 14), 14);
	close(fd);
	server_json(server, 200, "", hello_whole);
	server_json(other, 200, "", hello_whole);

	config.base_url = other->url;
	llm = new_llm(&config);
	ask(llm, "hi");
	assert_null(strstr(other->last, "Authorization"));
	assert_null(strstr(other->last, "sk-secret"));
	assert_string_equal(getenv("OPENAI_API_KEY"), key);
	free_llm(llm);

	config.key_file = key_path;
	setenv("OPENAI_API_KEY", key, 1);
	llm = new_llm(&config);
	ask(llm, "hi");
	assert_non_null(strstr(other->last, "\r\nAuthorization: Bearer from-the-file\r\n"));
	assert_string_equal(getenv("OPENAI_API_KEY"), key);
	free_llm(llm);

	config.key_file = NULL;
	config.base_url = server->url;
	setenv("OPENAI_API_KEY", key, 1);
	llm = new_llm(&config);
	ask(llm, "hi");
	assert_non_null(strstr(server->last, "sk-secret"));
	free_llm(llm);
	server_free(other);
	unlink(key_path);
}

static void assert_refused(const struct rlmd_provider_options *config, enum rlmd_error_kind kind,
			   const char *words)
{
	struct rlmd_error err = {0};

	assert_false(one_open(&one, base, config, NULL, &err));
	assert_int_equal(err.kind, kind);
	if (!strstr(err.text, words))
		fail_msg("%s", err.text);
}

/* A setting that cannot work is told before anything is started, and how to mend it. */
static void test_bad_configuration(void **state)
{
	struct rlmd_provider_options config = config_of("opnai");

	(void)state;
	assert_refused(&config, RLMD_ERROR_USAGE, "openai");
	config.kind = "replay";
	assert_refused(&config, RLMD_ERROR_USAGE, "(replay)");
	config.kind = "openai";
	config.base_url = "ftp://example.org";
	assert_refused(&config, RLMD_ERROR_USAGE, "ftp://example.org");
	config.base_url = "not a url";
	assert_refused(&config, RLMD_ERROR_USAGE, "not a url");
	config.base_url = NULL;
	config.key_file = "/nonexistent/key";
	assert_refused(&config, RLMD_ERROR_AUTH, "/nonexistent/key");
	config.key_file = NULL;
	unsetenv("OPENAI_API_KEY");
	unsetenv("OPENAI_BASE_URL");
	assert_refused(&config, RLMD_ERROR_AUTH, "OPENAI_API_KEY");
	config.price_table = "/nonexistent/prices";
	setenv("OPENAI_API_KEY", key, 1);
	assert_refused(&config, RLMD_ERROR_INPUT, "/nonexistent/prices");
	assert_string_equal(getenv("OPENAI_API_KEY"), key);
}

/* Upper estimates come from the table; local models are free, others unknown. */
static void test_prices(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct llm *llm = new_llm(&config);
	int64_t cost = -1;

	(void)state;
	assert_true(llm_price(llm, NULL, 1000, 100, &cost));
	assert_int_equal(cost, 1200000000);
	/* To write a prompt to a cache is cheaper here, but not where the prompt is long. */
	assert_true(llm_price(llm, "gpt-cached", 1000, 100, &cost));
	assert_int_equal(cost, 1200000000);
	assert_true(llm_price(llm, "gpt-cached", 300000, 0, &cost));
	assert_int_equal(cost, 900000000000);
	assert_false(llm_price(llm, "nobody-knows", 1, 1, &cost));
	assert_int_equal(llm_max_output(llm, NULL), 64000);
	assert_int_equal(llm_max_output(llm, "nobody-knows"), INT64_MAX);
	assert_string_equal(llm_default_model(llm), "gpt-test");
	assert_string_equal(llm_provider(llm, NULL), "openai");
	free_llm(llm);

	config.kind = "ollama";
	llm = new_llm(&config);
	assert_true(llm_price(llm, "nobody-knows", 1000, 100, &cost));
	assert_int_equal(cost, 0);
	free_llm(llm);
}

/* More models than prices are kept of, again and again; and rows that are named by a provider's
 * name hold for that name only. */
static void test_many_prices(void **state)
{
	struct rlmd_provider_options config = config_of("openai");
	struct rlmd_provider *provider = provider_new(&config, NULL);
	struct price price;
	char model[32];

	(void)state;
	for (int round = 0; round < 3; round++) {
		assert_true(provider_price(provider, "gpt-test", &price));
		assert_int_equal(price.max_output, 64000);
		for (int i = 0; i < 2 * PRICED_MAX; i++) {
			snprintf(model, sizeof model, "nobody-knows-%d", i);
			assert_false(provider_price(provider, model, &price));
			assert_true(provider_price(provider, "gpt-cached", &price));
			assert_int_equal(price.max_output, 0);
		}
	}
	assert_false(provider_price(provider, "named", &price));
	provider_rename(provider, "other");
	assert_true(provider_price(provider, "named", &price));
	assert_int_equal(price.max_output, 7);
	provider_rename(provider, "third");
	assert_false(provider_price(provider, "named", &price));
	provider_unref(provider);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {TEST(test_stream),
					   TEST(test_many_prices),
					   TEST(test_whole),
					   TEST(test_other_providers),
					   TEST(test_retry),
					   TEST(test_gives_up),
					   TEST(test_breaker_and_redaction),
					   TEST(test_redaction_in_stream),
					   TEST(test_redaction_beside_the_text),
					   TEST(test_quirk),
					   TEST(test_quirk_without_end),
					   TEST(test_less_output),
					   TEST(test_less_output_without_end),
					   TEST(test_nonsense),
					   TEST(test_huge_nonsense),
					   TEST(test_cut_stream),
					   TEST(test_unfinished_stream),
					   TEST(test_retry_needs_permission),
					   TEST(test_retry_with_permission),
					   TEST(test_free_retry_asks_nobody),
					   TEST(test_no_end_of_body),
					   TEST(test_missing_usage_and_price),
					   TEST(test_absurd_usage),
					   TEST(test_refused),
					   TEST(test_empty_text),
					   TEST(test_silent_truncation),
					   TEST(test_truncation_of_a_short_prompt),
					   TEST(test_streams_without_their_end),
					   TEST(test_streams_that_were_cut),
					   TEST(test_overlong_stream),
					   TEST(test_overlong_whole),
					   TEST(test_large_whole),
					   TEST(test_cancel),
					   TEST(test_cancel_sweep),
					   TEST(test_deadline),
					   TEST(test_many),
					   TEST(test_key_is_bound),
					   TEST(test_bad_configuration),
					   TEST(test_prices)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
