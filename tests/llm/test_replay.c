#include "llm/scripted.h"

#include <dirent.h>
#include <event2/buffer.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "llm/exchange.h"
#include "llm/key.h"
#include "llm/recording.h"
#include "one.h"
#include "server.h"

static struct event_base *base;
static char dir[64];
static const struct key_list keys;
static struct one opened;

static void put(const char *name, const char *json)
{
	char *path = xasprintf("%s/%s", dir, name);

	assert_true(file_write(path, text_of(json), NULL));
	free(path);
}

/* Every file of the directory, in its order, with `visit`. */
static size_t each_file(void (*visit)(const char *path))
{
	struct dirent **files = NULL;
	int count = scandir(dir, &files, NULL, alphasort);
	size_t seen = 0;

	for (int i = 0; i < count; i++) {
		char *path = xasprintf("%s/%s", dir, files[i]->d_name);

		if (files[i]->d_name[0] != '.') {
			visit(path);
			seen++;
		}
		free(path);
		free(files[i]);
	}
	free(files);
	return seen;
}

static void remove_file(const char *path)
{
	assert_int_equal(unlink(path), 0);
}

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/rlmd-replay-XXXXXX");
	base = event_base_new();
	return !mkdtemp(dir);
}

static int teardown(void **state)
{
	(void)state;
	each_file(remove_file);
	event_base_free(base);
	return rmdir(dir);
}

static int64_t max_tokens = 100;

struct outcome {
	bool done;
	struct rlmd_error error;
	char text[256], thinking[64], model[64];
	struct llm_usage usage;
	enum llm_finish finish;
	int64_t cost;
	bool cost_known;
	struct llm_message messages[2]; /* of the request */
};

static void on_answer(void *owner, const struct llm_response *response,
		      const struct rlmd_error *err)
{
	struct outcome *outcome = owner;

	assert_false(outcome->done);
	*outcome = (struct outcome){.done = true,
				    .usage = response->usage,
				    .finish = response->finish,
				    .cost = response->cost,
				    .cost_known = response->cost_known};
	if (err)
		outcome->error = *err;
	if (response->text.size)
		snprintf(outcome->text, sizeof outcome->text, "%.*s", (int)response->text.size,
			 response->text.bytes);
	if (response->thinking.size)
		snprintf(outcome->thinking, sizeof outcome->thinking, "%.*s",
			 (int)response->thinking.size, response->thinking.bytes);
	snprintf(outcome->model, sizeof outcome->model, "%s", response->model);
}

static struct llm_call *start(struct llm *llm, struct outcome *outcome, const char *prompt,
			      enum llm_kind kind, int depth, int turn)
{
	struct llm_request request = {.messages = outcome->messages,
				      .message_count = 2,
				      .max_tokens = max_tokens,
				      .deadline = clock_ms() + 100000,
				      .kind = kind,
				      .depth = depth,
				      .turn = turn};

	*outcome = (struct outcome){0};
	outcome->messages[0] = (struct llm_message){LLM_SYSTEM, text_of("system words")};
	outcome->messages[1] = (struct llm_message){LLM_USER, text_of(prompt)};
	return llm_start(llm, &request, on_answer, outcome);
}

static struct outcome ask(struct llm *llm, const char *prompt, enum llm_kind kind, int depth,
			  int turn)
{
	struct outcome outcome;

	start(llm, &outcome, prompt, kind, depth, turn);
	assert_false(outcome.done);
	run_until(base, &outcome.done);
	return outcome;
}

static struct llm *new_llm(const char *kind, const char *model, const char *replay_dir,
			   const char *record_dir)
{
	struct rlmd_provider_options config = {.kind = kind, .model = model};
	struct llm_config job = {.replay_dir = replay_dir, .record_dir = record_dir};
	struct rlmd_error err = {0};

	if (!one_open(&opened, base, &config, &job, &err))
		fail_msg("%s", err.text);
	return opened.llm;
}

static void free_llm(struct llm *llm)
{
	assert_ptr_equal(llm, opened.llm);
	one_close(&opened);
}

static struct llm *new_replay(void)
{
	return new_llm("replay", NULL, dir, NULL);
}

static void assert_says(struct outcome outcome, const char *text)
{
	assert_string_equal(outcome.error.text, "");
	assert_string_equal(outcome.text, text);
}

/* Entries match by kind, depth, turn and pattern; each part that is missing matches all. */
static void test_match(void **state)
{
	struct llm *llm;

	(void)state;
	put("a.json", "[{\"match\": {\"kind\": \"turn\", \"depth\": 0, \"turn\": 1},"
		      "  \"response\": {\"text\": \"root, turn 1\"}, \"repeat\": true},"
		      " {\"match\": {\"kind\": \"turn\", \"depth\": 1},"
		      "  \"response\": {\"text\": \"below\"}, \"repeat\": true},"
		      " {\"match\": {\"pattern\": \"^(red|green) +apple$\"},"
		      "  \"response\": {\"text\": \"apple\"}, \"repeat\": true},"
		      " {\"response\": {\"text\": [\"any\", \"thing\"]}, \"repeat\": true}]");
	llm = new_replay();
	assert_says(ask(llm, "x", LLM_TURN, 0, 1), "root, turn 1");
	assert_says(ask(llm, "x", LLM_TURN, 1, 1), "below");
	assert_says(ask(llm, "green  apple", LLM_QUERY, 0, 0), "apple");
	assert_says(ask(llm, "a green apple", LLM_QUERY, 0, 0), "any\nthing");
	assert_says(ask(llm, "x", LLM_FORCED, 0, 1), "any\nthing");
	free_llm(llm);
}

/* An entry is used once, in the order of files and entries, unless it repeats. */
static void test_once_in_order(void **state)
{
	struct llm *llm;

	(void)state;
	put("b.json", "{\"response\": {\"text\": \"third\"}, \"repeat\": true}");
	put("a.json", "[{\"response\": {\"text\": \"first\"}},"
		      " {\"response\": {\"text\": \"second\"}, \"repeat\": false}]");
	llm = new_replay();
	assert_says(ask(llm, "x", LLM_TURN, 0, 0), "first");
	assert_says(ask(llm, "x", LLM_TURN, 0, 0), "second");
	assert_says(ask(llm, "x", LLM_TURN, 0, 0), "third");
	assert_says(ask(llm, "x", LLM_TURN, 0, 0), "third");
	free_llm(llm);
}

/* All fields of an answer arrive; without usage it is estimated and marked, and costs nothing. */
static void test_fields(void **state)
{
	struct outcome outcome;
	struct llm *llm;

	(void)state;
	put("a.json",
	    "[{\"response\": {\"text\": \"t\", \"thinking\": \"hm\", \"finish\": \"length\","
	    "   \"model\": \"m-1\", \"usage\": {\"input\": 7, \"output\": 5}, \"cost\": 0.25}},"
	    " {\"response\": {\"text\": \"four words of text\"}}]");
	llm = new_replay();
	outcome = ask(llm, "x", LLM_TURN, 0, 0);
	assert_says(outcome, "t");
	assert_string_equal(outcome.thinking, "hm");
	assert_string_equal(outcome.model, "m-1");
	assert_int_equal(outcome.finish, LLM_FINISH_LENGTH);
	assert_int_equal(outcome.usage.input, 7);
	assert_int_equal(outcome.usage.output, 5);
	assert_false(outcome.usage.estimated);
	assert_int_equal(outcome.cost, 250000000000);

	outcome = ask(llm, "x", LLM_TURN, 0, 0);
	assert_true(outcome.usage.estimated);
	assert_true(outcome.usage.input > 0 && outcome.usage.output > 0);
	assert_int_equal(outcome.cost, 0);
	assert_true(outcome.cost_known);
	free_llm(llm);
}

/* Errors of every kind can be scripted. */
static void test_errors(void **state)
{
	struct outcome outcome;
	struct llm *llm;

	(void)state;
	put("a.json", "{\"error\": {\"kind\": \"overloaded\", \"message\": \"too much\","
		      " \"http_status\": 529}}");
	llm = new_replay();
	outcome = ask(llm, "x", LLM_TURN, 0, 0);
	assert_int_equal(outcome.error.kind, RLMD_ERROR_OVERLOADED);
	assert_int_equal(outcome.error.http_status, 529);
	assert_string_equal(outcome.error.text, "too much");
	free_llm(llm);
}

/* A miss is an error that says what was asked for and what to do; nothing is opened. */
static void test_miss(void **state)
{
	struct outcome outcome;
	struct llm *llm;

	(void)state;
	put("a.json", "{\"match\": {\"turn\": 9}, \"response\": {\"text\": \"x\"}}");
	llm = new_replay();
	outcome = ask(llm,
		      "a prompt with \033 in it and more than sixty characters, so that it is cut",
		      LLM_QUERY, 2, 3);
	assert_int_equal(outcome.error.kind, RLMD_ERROR_REPLAY);
	assert_non_null(strstr(outcome.error.text, "kind llm_query, depth 2, turn 3"));
	assert_non_null(strstr(outcome.error.text, "'a prompt with \\x1b in it"));
	assert_null(strstr(outcome.error.text, "it is cut"));
	assert_non_null(strstr(outcome.error.text, "record it (record)"));
	free_llm(llm);
}

enum { TICK_MS = 10 }; /* how early a timer may be: libevent reads CLOCK_MONOTONIC_COARSE */

/* A delay is kept, ends at the call's deadline, and can be cancelled. */
static void test_delay(void **state)
{
	struct llm_usage usage = {0};
	struct llm_message message = {LLM_USER, text_of("x")};
	struct llm_request request = {.messages = &message, .message_count = 1, .max_tokens = 1};
	struct outcome outcome;
	int64_t started = clock_ms();
	struct llm_call *call;
	struct llm *llm;

	(void)state;
	put("a.json",
	    "[{\"response\": {\"text\": \"late\", \"delay\": 40}},"
	    " {\"response\": {\"text\": \"never\", \"delay\": 100000}, \"repeat\": true}]");
	llm = new_replay();
	assert_says(ask(llm, "x", LLM_TURN, 0, 0), "late");
	assert_true(clock_ms() - started >= 40 - TICK_MS);

	request.deadline = clock_ms() + 20;
	outcome = (struct outcome){0};
	llm_start(llm, &request, on_answer, &outcome);
	run_until(base, &outcome.done);
	assert_int_equal(outcome.error.kind, RLMD_ERROR_TIMEOUT);

	call = start(llm, &outcome, "x", LLM_TURN, 0, 0);
	llm_cancel(call, &usage, NULL);
	assert_true(usage.estimated);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_false(outcome.done);
	free_llm(llm);
}

/* A bad script is refused when it is read, by file, entry and field. */
static void test_bad_scripts(void **state)
{
	static const struct {
		const char *json, *words;
	} cases[] = {
		{"[{\"response\": {\"text\": \"fine\"}}, {\"response\": {\"text\": 5}}]",
		 "a.json: entry 2: \"text\""},
		{"[{}]", "entry 1: neither"},
		{"[5]", "entry 1: no object"},
		{"{\"response\": {\"txt\": \"x\"}}", "unknown field \"txt\""},
		{"{\"response\": {\"text\": [\"a\", 1]}}", "line 2"},
		{"{\"respones\": {}}", "unknown field \"respones\""},
		{"{\"match\": {\"kind\": \"root\"}, \"response\": {}}", "\"kind\""},
		{"{\"match\": {\"turn\": -1}, \"response\": {}}", "\"turn\""},
		{"{\"match\": {\"depth\": \"0\"}, \"response\": {}}", "\"depth\""},
		{"{\"match\": {\"pattern\": \"(\"}, \"response\": {}}", "\"pattern\""},
		{"{\"match\": {\"prompt\": \"x\"}, \"response\": {}}", "\"prompt\""},
		{"{\"match\": 5, \"response\": {}}", "\"match\""},
		{"{\"response\": {\"finish\": \"done\"}}", "\"finish\""},
		{"{\"response\": {\"cost\": -1}}", "\"cost\""},
		{"{\"response\": {\"delay\": 0.5}}", "\"delay\""},
		{"{\"response\": {\"usage\": {\"input\": -1}}}", "\"input\""},
		{"{\"response\": {\"usage\": {\"input\": 1000000000000000000}}}", "\"input\""},
		{"{\"response\": {\"usage\": {\"output\": 1e400}}}", "not JSON"},
		{"{\"response\": {\"usage\": []}}", "\"usage\""},
		{"{\"error\": {\"kind\": \"nothing\"}}", "\"kind\""},
		{"{\"response\": {}, \"repeat\": 1}", "\"repeat\""},
		{"{\"response\": ", "not JSON"},
		{"[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]", "nested"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rlmd_error err = {0};

		put("a.json", cases[i].json);
		assert_null(recording_new(base, NULL, dir, &keys, &err));
		assert_int_equal(err.kind, RLMD_ERROR_INPUT);
		if (!strstr(err.text, cases[i].words) || !strstr(err.text, "a.json"))
			fail_msg("%s", err.text);
	}
}

/* A directory that is missing or empty is a mistake, not an empty script. */
static void test_bad_directory(void **state)
{
	struct rlmd_error err = {0};

	(void)state;
	assert_null(recording_new(base, NULL, "/nonexistent/replay", &keys, &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	assert_null(recording_new(base, NULL, dir, &keys, &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	assert_non_null(strstr(err.text, "(record)"));
}

static const char key[] = "sk-secret-0123456789";

static void check_recording(const char *path)
{
	struct stat st;
	size_t size;
	char *bytes = file_read(path, 1 << 20, &size, NULL);

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_null(strstr(bytes, key));
	assert_null(strstr(bytes, "Authorization"));
	free(bytes);
}

/* A recording made over HTTP is replayed without it, the same to the last unit; equal requests
 * in their order; errors too. No key is in it, and nobody else may read it. */
static void test_record_and_replay(void **state)
{
	static const char *const bodies[] = {
		"{\"model\":\"m-1\",\"choices\":[{\"message\":{\"content\":\"one\"},"
		"\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":11,"
		"\"completion_tokens\":3,\"cost\":0.000123456789}}",
		"{\"model\":\"m-1\",\"choices\":[{\"message\":{\"content\":"
		"\"two sk-secret-0123456789\"},\"finish_reason\":\"length\"}],"
		"\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":4,\"cost\":0.5}}",
	};
	struct server *server = server_new(base);
	struct outcome live[3], again;
	struct llm *llm;
	char *url = xasprintf("%s/v1", server->url);

	(void)state;
	rmdir(dir);
	setenv("OPENAI_API_KEY", key, 1);
	setenv("OPENAI_BASE_URL", url, 1);
	server_json(server, 200, "", bodies[0]);
	server_json(server, 200, "", bodies[1]);
	server_json(server, 404, "", "{\"error\":{\"message\":\"no such model\"}}");
	llm = new_llm("openai", "m", NULL, dir);
	for (int i = 0; i < 3; i++)
		live[i] = ask(llm, "same", LLM_QUERY, 0, i);
	assert_int_equal(live[0].cost, 123456789);
	free_llm(llm);
	server_free(server);
	assert_int_equal(each_file(check_recording), 3);

	llm = new_llm("replay", "m", dir, NULL);
	for (int i = 0; i < 3; i++) {
		again = ask(llm, "same", LLM_QUERY, 0, 9);
		assert_int_equal(again.error.kind, live[i].error.kind);
		assert_string_equal(again.error.text, live[i].error.text);
		assert_int_equal(again.error.http_status, live[i].error.http_status);
		assert_int_equal(again.cost, live[i].cost);
		assert_int_equal(again.finish, live[i].finish);
		assert_memory_equal(&again.usage, &live[i].usage, sizeof again.usage);
		assert_string_equal(again.model, live[i].model);
		assert_string_equal(again.text, i == 1 ? "two ***" : live[i].text);
	}
	again = ask(llm, "same", LLM_QUERY, 0, 9);
	assert_int_equal(again.error.kind, RLMD_ERROR_REPLAY);
	again = ask(llm, "other", LLM_QUERY, 0, 0);
	assert_int_equal(again.error.kind, RLMD_ERROR_REPLAY);
	free_llm(llm);
	free(url);
}

/* Whether a file of the directory is open. */
static bool is_writing(void)
{
	DIR *files = opendir("/proc/self/fd");
	const struct dirent *file;
	bool found = false;

	while ((file = readdir(files))) {
		char path[256];
		ssize_t size = readlinkat(dirfd(files), file->d_name, path, sizeof path - 1);

		path[size > 0 ? size : 0] = '\0';
		found |= !strncmp(path, dir, strlen(dir));
	}
	closedir(files);
	return found;
}

static void check_cancelled(const char *path)
{
	auto_free char *bytes = file_read(path, 1 << 20, NULL, NULL);

	assert_non_null(strstr(bytes, "\"cancelled\":true"));
	assert_non_null(strstr(bytes, "\"output\":3"));
	assert_in_range(strlen(bytes), 1, 1 << 16); /* no answer */
}

/* An answer of megabytes is recorded in steps. A call that is cancelled meanwhile is paid, and
 * recorded as one that nobody had an answer of. */
static void test_cancelled_while_it_is_recorded(void **state)
{
	static char text[3 << 20]; /* that does not repeat itself */
	struct server *server = server_new(base);
	struct llm_usage usage;
	struct outcome outcome;
	struct llm_call *call;
	struct llm *llm;
	int64_t cost;
	auto_free char *url = xasprintf("%s/v1", server->url), *body = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof text - 1; i++)
		text[i] = (char)('a' + (uint32_t)(i * i * 2654435761U) % 251 % 26);
	body = xasprintf("{\"model\":\"m-1\",\"choices\":[{\"message\":{\"content\":\"%s\"},"
			 "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":11,"
			 "\"completion_tokens\":3,\"cost\":0.5}}",
			 text);
	setenv("OPENAI_API_KEY", key, 1);
	setenv("OPENAI_BASE_URL", url, 1);
	server_json(server, 200, "", body);
	server_json(server, 200, "", body);
	llm = new_llm("openai", "m", NULL, dir);
	max_tokens = sizeof text;
	call = start(llm, &outcome, "same", LLM_QUERY, 0, 0);
	while (!is_writing() && !outcome.done)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	assert_string_equal(outcome.error.text, "");
	assert_false(outcome.done);
	llm_cancel(call, &usage, &cost);
	assert_int_equal(usage.input, 11);
	assert_int_equal(usage.output, 3);
	assert_int_equal(cost, 500000000000);
	assert_false(is_writing());
	assert_int_equal(each_file(check_cancelled), 1);
	each_file(remove_file);

	ask(llm, "same", LLM_QUERY, 0, 1);
	free_llm(llm);
	server_free(server);
	llm = new_llm("replay", "m", dir, NULL);
	outcome = ask(llm, "same", LLM_QUERY, 0, 2);
	assert_memory_equal(outcome.text, text, sizeof outcome.text - 1);
	assert_int_equal(outcome.cost, 500000000000);
	free_llm(llm);
	max_tokens = 100;
}

/* A replay can be recorded: so a script becomes a recording. */
static void test_record_a_replay(void **state)
{
	struct llm *llm;

	(void)state;
	put("a.json", "{\"response\": {\"text\": \"from the script\"}}");
	llm = new_llm("replay", NULL, dir, dir);
	assert_says(ask(llm, "x", LLM_TURN, 0, 0), "from the script");
	free_llm(llm);
	llm = new_replay();
	assert_says(ask(llm, "x", LLM_TURN, 5, 5), "from the script");
	free_llm(llm);
}

/* The identity of a request: its words, model and limit; not what it was for. */
static void test_identity(void **state)
{
	struct llm_message messages[] = {{LLM_USER, text_of("a\xff")},
					 {LLM_ASSISTANT, text_of("b")}};
	struct llm_request one = {
		.model = "m", .messages = messages, .message_count = 2, .max_tokens = 5};
	struct llm_request other = one;
	char first[EXCHANGE_ID_SIZE], second[EXCHANGE_ID_SIZE];

	(void)state;
	other.kind = LLM_FORCED;
	other.turn = 7;
	other.deadline = 99;
	exchange_id(&one, first);
	exchange_id(&other, second);
	assert_int_equal(strlen(first), 64);
	assert_string_equal(first, second);
	other.max_tokens = 6;
	exchange_id(&other, second);
	assert_string_not_equal(first, second);
	other = one;
	other.model = "n";
	exchange_id(&other, second);
	assert_string_not_equal(first, second);
	other = one;
	other.message_count = 1;
	exchange_id(&other, second);
	assert_string_not_equal(first, second);
}

static void assert_id_of_json(const struct llm_request *request)
{
	char id[EXCHANGE_ID_SIZE], expected[EXCHANGE_ID_SIZE];
	json_t *object = exchange_request(request);
	struct evbuffer *bytes = evbuffer_new();

	json_write(object, true, bytes);
	exchange_hash(text_in(bytes), expected);
	exchange_id(request, id);
	assert_string_equal(id, expected);
	evbuffer_free(bytes);
	json_decref(object);
}

/* The identity is the hash of the request's JSON, keys in order, though that is never made: names
 * of recordings and places in caches that were made so stay. */
static void test_identity_is_of_json(void **state)
{
	enum { SIZE = 300000 };
	static const char odd[] =
		"\x1b[0m \xff\xe2\x82 \"\\\b\f\v\x7f \xc3\xa9\xf0\x9f\x98\x80\n\0.";
	static const char *const stops[] = {"a\n", "\"b\""};
	char *text = xcalloc(SIZE, 1);
	struct llm_message messages[] = {{LLM_SYSTEM, {odd, sizeof odd}},
					 {LLM_USER, {text, SIZE}},
					 {LLM_ASSISTANT, {NULL, 0}},
					 {LLM_USER, {odd, 9}}};
	struct llm_request request = {.model = "m", .messages = messages, .max_tokens = 7};

	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		text[i] = odd[i % (sizeof odd - 1)];
	for (; request.message_count <= 4; request.message_count++)
		assert_id_of_json(&request);
	request.message_count = 4;
	request.sampling = (struct llm_sampling){true, 0.7, stops, 2};
	assert_id_of_json(&request);
	request.schema = text_of("{\"type\":\"object\"}");
	request.named = "named/m";
	assert_id_of_json(&request);
	request.sampling.temperature = 0;
	assert_id_of_json(&request);
	free(text);
}

/* The usage of a reply after several attempts is their sum, which says nothing about one prompt. */
static void test_several_attempts(void **state)
{
	const struct llm_request request = {.model = "m"};

	(void)state;
	for (int billed = 0; billed < 4; billed++) {
		struct llm_response response = {
			.text = text_of("answer"),
			.billed = billed,
			.cached = !billed,
			.model = "m",
		};
		json_t *entry = exchange_answer(&response, NULL);
		struct exchange exchange;

		assert_true(exchange_read(entry, &exchange, NULL));
		assert_int_equal(exchange_response(&exchange, &request).billed, billed);
		exchange_done(&exchange);
		json_decref(entry);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_match),
		TEST(test_once_in_order),
		TEST(test_fields),
		TEST(test_errors),
		TEST(test_miss),
		TEST(test_delay),
		TEST(test_bad_scripts),
		TEST(test_bad_directory),
		TEST(test_record_and_replay),
		TEST(test_cancelled_while_it_is_recorded),
		TEST(test_record_a_replay),
		TEST(test_identity),
		TEST(test_identity_is_of_json),
		TEST(test_several_attempts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
