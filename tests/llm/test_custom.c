#include "llm/custom.h"

#include <dirent.h>
#include <rlmd/price.h>
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
#include "llm/llm.h"
#include "llm/registry.h"
#include "server.h"

enum { TIME_MS = 100000, ASKED_MAX = 400 };

static const char rows[] =
	"{\"mine/m\": {\"input_cost_per_token\": 1e-6, \"output_cost_per_token\": 2e-6}}";

static struct event_base *base;
static struct registry *registry;
static struct rlmd_provider *provider;
static struct llm *llm;
static char prices[64];

/* The host, what it was asked, and how it answers. */
static struct {
	size_t asked, cancelled;
	uint64_t ids[ASKED_MAX], cancelled_id;
	char words[400]; /* of the last request */
	int64_t left;
	void (*act)(uint64_t id); /* from inside the request; NULL: later, or never */
} host;

static void on_ask(void *owner, const struct rlmd_model_request *request)
{
	size_t used = 0;

	assert_ptr_equal(owner, &host);
	assert_int_equal(request->size, sizeof *request);
	host.ids[host.asked++] = request->id;
	host.left = request->time_left_ms;
	used += (size_t)snprintf(host.words, sizeof host.words, "%s %lld %d %g", request->model,
				 (long long)request->max_tokens, request->with_temperature,
				 request->temperature);
	for (size_t i = 0; i < request->stop_count; i++)
		used += (size_t)snprintf(host.words + used, sizeof host.words - used, " stop %s",
					 request->stops[i]);
	for (size_t i = 0; i < request->message_count; i++)
		used += (size_t)snprintf(host.words + used, sizeof host.words - used, " %d:%.*s",
					 (int)request->messages[i].role,
					 (int)request->messages[i].text.size,
					 request->messages[i].text.bytes);
	if (host.act)
		host.act(request->id);
}

static void on_cancel(void *owner, uint64_t id)
{
	assert_ptr_equal(owner, &host);
	host.cancelled++;
	host.cancelled_id = id;
	/* Not even from in here is it known. */
	assert_false(rlmd_provider_delta(provider, id, rlmd_text_of("more")));
}

static bool say(uint64_t id, const char *text)
{
	return rlmd_provider_answer(provider, id,
				    &(struct rlmd_model_answer){
					    .size = sizeof(struct rlmd_model_answer),
					    .text = rlmd_text_of(text),
					    .input_tokens = 10,
					    .output_tokens = 3,
				    });
}

static bool fail_with(uint64_t id, enum rlmd_error_kind kind, int status)
{
	return rlmd_provider_fail(provider, id,
				  &(struct rlmd_model_failure){
					  .size = sizeof(struct rlmd_model_failure),
					  .kind = kind,
					  .message = "no\nluck",
					  .http_status = status,
					  .retry_after_ms = 1,
				  });
}

static void say_hello(uint64_t id)
{
	assert_true(say(id, "hello"));
}

static void fail_twice(uint64_t id)
{
	if (host.asked < 3)
		assert_true(fail_with(id, RLMD_ERROR_OVERLOADED, 503));
	else
		say_hello(id);
}

static void fail_auth(uint64_t id)
{
	assert_true(fail_with(id, RLMD_ERROR_AUTH, 401));
}

struct outcome {
	struct llm_call *call;
	bool done;
	struct rlmd_error error;
	char text[64], thinking[64], model[64];
	struct llm_usage usage;
	enum llm_finish finish;
	bool cost_known, overlong;
	int64_t cost;
	int attempts;
	size_t *count;
	char seen[64]; /* as it came */
};

static void on_delta(void *owner, struct rlmd_text more)
{
	struct outcome *outcome = owner;
	size_t used = strlen(outcome->seen);

	assert_false(outcome->done);
	snprintf(outcome->seen + used, sizeof outcome->seen - used, "%.*s|", (int)more.size,
		 more.bytes);
}

static void on_answer(void *owner, const struct llm_response *response,
		      const struct rlmd_error *err)
{
	struct outcome *outcome = owner;

	assert_false(outcome->done);
	outcome->done = true;
	if (err)
		outcome->error = *err;
	snprintf(outcome->text, sizeof outcome->text, "%.*s", (int)response->text.size,
		 response->text.bytes ? response->text.bytes : "");
	snprintf(outcome->thinking, sizeof outcome->thinking, "%.*s", (int)response->thinking.size,
		 response->thinking.bytes ? response->thinking.bytes : "");
	snprintf(outcome->model, sizeof outcome->model, "%s", response->model);
	outcome->usage = response->usage;
	outcome->finish = response->finish;
	outcome->cost_known = response->cost_known;
	outcome->overlong = response->overlong;
	outcome->cost = response->cost;
	outcome->attempts = response->attempts;
	if (outcome->count)
		++*outcome->count;
}

static void start_until(struct outcome *outcome, int64_t time_ms)
{
	static const char *const stops[] = {"END"};
	static struct llm_message messages[2]; /* for as long as the call lasts */
	struct llm_request request = {.messages = messages,
				      .message_count = 2,
				      .max_tokens = 100,
				      .sampling = {true, 0.5, stops, 1},
				      .deadline = clock_ms() + time_ms,
				      .on_delta = on_delta,
				      .delta_owner = outcome};

	messages[0] = (struct llm_message){LLM_SYSTEM, rlmd_text_of("be brief")};
	messages[1] = (struct llm_message){LLM_USER, rlmd_text_of("hi")};
	outcome->call = llm_start(llm, &request, on_answer, outcome);
	assert_false(outcome->done);
}

static void start(struct outcome *outcome)
{
	start_until(outcome, TIME_MS);
}

static struct outcome ask(void)
{
	struct outcome outcome = {0};

	start(&outcome);
	run_until(base, &outcome.done);
	return outcome;
}

static struct rlmd_provider_options options_of(void)
{
	return (struct rlmd_provider_options){
		.size = sizeof(struct rlmd_provider_options),
		.name = "mine",
		.model = "m",
		.price_table = prices,
		.ask = on_ask,
		.cancel = on_cancel,
		.owner = &host,
	};
}

static void open_with(const struct rlmd_provider_options *options, const struct llm_config *config)
{
	struct rlmd_error err = {0};

	registry = registry_new(base);
	provider = rlmd_provider_new(options, &err);
	if (!provider || !registry_add(registry, NULL, provider, &err))
		fail_msg("%s", err.text);
	llm = llm_new(registry, config, &err);
	if (!llm)
		fail_msg("%s", err.text);
	json_decref(llm_take_warnings(llm));
}

static void close_all(void)
{
	llm_free(llm);
	registry_free(registry);
	rlmd_provider_unref(provider);
}

static int setup(void **state)
{
	struct rlmd_provider_options options;
	FILE *file;

	(void)state;
	memset(&host, 0, sizeof host);
	strcpy(prices, "/tmp/rlmd-prices-XXXXXX");
	file = fdopen(mkstemp(prices), "w");
	fputs(rows, file);
	fclose(file);
	base = event_base_new();
	options = options_of();
	open_with(&options, &(struct llm_config){0});
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_all();
	event_base_free(base);
	return unlink(prices);
}

static void assert_hello(const struct outcome *outcome)
{
	if (outcome->error.kind)
		fail_msg("%s", outcome->error.text);
	assert_string_equal(outcome->text, "hello");
	assert_int_equal(outcome->usage.input, 10);
	assert_int_equal(outcome->usage.output, 3);
	assert_false(outcome->usage.estimated);
	assert_true(outcome->cost_known);
	assert_int_equal(outcome->cost, 16000000); /* 10 * 1e-6 + 3 * 2e-6 dollars */
	assert_string_equal(outcome->model, "m");
}

/* From inside the question: nobody is called back before llm_start() returned. */
static void test_at_once(void **state)
{
	struct outcome outcome;

	(void)state;
	host.act = say_hello;
	outcome = ask();
	assert_hello(&outcome);
	assert_string_equal(host.words, "m 100 1 0.5 stop END 0:be brief 1:hi");
	assert_in_range(host.left, 1, TIME_MS);
	assert_int_equal(host.cancelled, 0);
}

static void test_later(void **state)
{
	struct outcome outcome = {0};

	(void)state;
	start(&outcome);
	run_until_count(base, &host.asked, 1);
	assert_true(rlmd_provider_delta(provider, host.ids[0], rlmd_text_of("he")));
	assert_string_equal(outcome.seen, ""); /* from inside of that nobody is called */
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_string_equal(outcome.seen, "he|");
	assert_true(rlmd_provider_delta(provider, host.ids[0], rlmd_text_of("ll")));
	assert_true(say(host.ids[0], "o"));
	assert_false(outcome.done);
	run_until(base, &outcome.done);
	assert_hello(&outcome);
	assert_string_equal(outcome.seen, "he|llo|");
}

/* Whatever else the answer says. */
static void test_fields(void **state)
{
	struct outcome outcome = {0};

	(void)state;
	start(&outcome);
	run_until_count(base, &host.asked, 1);
	assert_true(rlmd_provider_answer(provider, host.ids[0],
					 &(struct rlmd_model_answer){
						 .size = sizeof(struct rlmd_model_answer),
						 .text = rlmd_text_of("a\xff"),
						 .thinking = rlmd_text_of("hm"),
						 .cut = true,
						 .input_tokens = 10,
						 .output_tokens = 3,
						 .cached_tokens = 4,
						 .with_cost = true,
						 .cost = 77,
						 .model = "m-2026",
					 }));
	run_until(base, &outcome.done);
	assert_string_equal(outcome.text, "a\xef\xbf\xbd");
	assert_string_equal(outcome.thinking, "hm");
	assert_string_equal(outcome.model, "m-2026");
	assert_int_equal(outcome.finish, LLM_FINISH_LENGTH);
	assert_int_equal(outcome.usage.cache_read, 4);
	assert_int_equal(outcome.cost, 77);
}

/* Tokens that nobody counted, or can have been, are estimated. */
static void test_no_usage(void **state)
{
	static const int64_t counts[] = {0, -1, INT64_MAX, INT64_MIN};

	(void)state;
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct rlmd_model_answer answer = {
			.size = sizeof answer,
			.text = rlmd_text_of("hello"),
			.input_tokens = counts[i],
			.output_tokens = counts[i],
			.cached_tokens = counts[i],
		};
		struct outcome outcome = {0};

		start(&outcome);
		run_until_count(base, &host.asked, i + 1);
		assert_true(rlmd_provider_answer(provider, host.ids[i], &answer));
		run_until(base, &outcome.done);
		assert_string_equal(outcome.text, "hello");
		assert_true(outcome.usage.estimated);
		assert_in_range(outcome.usage.input, 1, 100);
		assert_in_range(outcome.usage.output, 1, 100);
	}
}

/* Answers to what is answered, cancelled, or never was; and answers that are none. */
static void test_harmless(void **state)
{
	struct rlmd_model_answer answer = {.size = sizeof answer};
	struct rlmd_model_failure failure = {.size = sizeof failure};
	struct outcome outcome = {0};
	uint64_t id;

	(void)state;
	start(&outcome);
	run_until_count(base, &host.asked, 1);
	id = host.ids[0];
	assert_false(rlmd_provider_delta(provider, id, (struct rlmd_text){NULL, 5}));
	assert_false(rlmd_provider_answer(
		provider, id,
		&(struct rlmd_model_answer){.size = sizeof answer, .text = {NULL, 5}}));
	assert_false(rlmd_provider_answer(provider, id, NULL));
	assert_false(rlmd_provider_fail(provider, id, NULL));
	assert_false(rlmd_provider_answer(provider, id, &(struct rlmd_model_answer){.size = 3}));
	assert_false(rlmd_provider_fail(provider, id, &(struct rlmd_model_failure){.size = 3}));
	assert_false(rlmd_provider_answer(provider, id + 1, &answer));
	assert_false(rlmd_provider_answer(provider, 0, &answer));
	assert_false(rlmd_provider_answer(provider, UINT64_MAX, &answer));
	assert_false(rlmd_provider_answer(NULL, id, &answer));
	assert_true(say(id, "hello"));
	assert_false(say(id, "again"));
	assert_false(rlmd_provider_delta(provider, id, rlmd_text_of("again")));
	assert_false(rlmd_provider_fail(provider, id, &failure));
	run_until(base, &outcome.done);
	assert_hello(&outcome);
	assert_false(say(id, "again"));
	assert_int_equal(host.cancelled, 0);
}

static void test_cancelled(void **state)
{
	struct outcome outcome = {0};
	struct llm_usage usage;
	int64_t cost;

	(void)state;
	start(&outcome);
	run_until_count(base, &host.asked, 1);
	assert_true(rlmd_provider_delta(provider, host.ids[0], rlmd_text_of("half an answer")));
	llm_cancel(outcome.call, &usage, &cost);
	assert_int_equal(host.cancelled, 1);
	assert_int_equal(host.cancelled_id, host.ids[0]);
	assert_true(usage.estimated && usage.input > 0 && usage.output > 0);
	assert_int_equal(cost, usage.input * 1000000 + usage.output * 2000000);
	assert_false(say(host.ids[0], "late"));
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_false(outcome.done);

	/* Answered, but nobody has heard of it yet. */
	outcome = (struct outcome){0};
	start(&outcome);
	run_until_count(base, &host.asked, 2);
	assert_true(say(host.ids[1], "hello"));
	llm_cancel(outcome.call, &usage, &cost);
	assert_int_equal(host.cancelled, 1);
	assert_int_equal(usage.output, 3);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_false(outcome.done);
}

static void test_deadline(void **state)
{
	struct outcome outcome = {0};

	(void)state;
	start_until(&outcome, 30);
	run_until(base, &outcome.done);
	assert_int_equal(outcome.error.kind, RLMD_ERROR_TIMEOUT);
	assert_int_equal(host.asked, host.cancelled);
	if (host.asked) /* else the machine took longer to get there */
		assert_true(outcome.usage.estimated);
}

/* Tried again as any other provider, sooner or later as it wishes; nothing is paid for that. */
static void test_retried(void **state)
{
	struct outcome outcome;

	(void)state;
	host.act = fail_twice;
	outcome = ask();
	assert_hello(&outcome);
	assert_int_equal(outcome.attempts, 3);
	assert_int_equal(host.cancelled, 0);
}

static void always_fail(uint64_t id)
{
	fail_with(id, RLMD_ERROR_NETWORK, 0);
}

static void bad_request(uint64_t id)
{
	fail_with(id, RLMD_ERROR_BAD_REQUEST, 0);
}

static void fail_with_nothing(uint64_t id)
{
	fail_with(id, RLMD_ERROR_NONE, 0);
}

static void test_failures(void **state)
{
	struct outcome outcome;

	(void)state;
	host.act = always_fail;
	outcome = ask();
	assert_int_equal(outcome.error.kind, RLMD_ERROR_NETWORK);
	assert_string_equal(outcome.error.text, "mine: no\\nluck; gave up after 3 attempts");
	assert_int_equal(host.asked, 3);
	assert_int_equal(outcome.usage.input, 0);
	host.act = bad_request;
	outcome = ask();
	assert_int_equal(outcome.error.kind, RLMD_ERROR_BAD_REQUEST);
	assert_int_equal(host.asked, 4);
	host.act = fail_with_nothing;
	outcome = ask();
	assert_int_equal(outcome.error.kind, RLMD_ERROR_INTERNAL);
	/* One that refuses its key is not asked again. */
	host.act = fail_auth;
	outcome = ask();
	assert_int_equal(outcome.error.kind, RLMD_ERROR_AUTH);
	assert_int_equal(host.asked, 6);
	outcome = ask();
	assert_int_equal(outcome.error.kind, RLMD_ERROR_AUTH);
	assert_int_equal(host.asked, 6);
}

/* A host that does not stop where it was told to is told that nobody listens. */
static void test_overlong(void **state)
{
	struct outcome outcome = {0};
	size_t taken = 0;

	(void)state;
	start(&outcome);
	run_until_count(base, &host.asked, 1);
	while (rlmd_provider_delta(provider, host.ids[0], rlmd_text_of("word by word ")))
		assert_true(taken++ < 1000);
	run_until(base, &outcome.done);
	assert_int_equal(outcome.error.kind, RLMD_ERROR_NONE);
	assert_true(outcome.overlong);
	assert_int_equal(outcome.finish, LLM_FINISH_LENGTH);
	assert_int_equal(host.cancelled, 1);
	assert_true(outcome.usage.estimated);
}

/* So many at once, answered in another order. */
static void test_many(void **state)
{
	static struct outcome outcomes[ASKED_MAX];
	size_t count = 0;

	(void)state;
	memset(outcomes, 0, sizeof outcomes);
	for (size_t i = 0; i < ASKED_MAX; i++) {
		outcomes[i].count = &count;
		start(&outcomes[i]);
	}
	run_until_count(base, &host.asked, ASKED_MAX);
	for (size_t i = 0; i < ASKED_MAX; i++)
		assert_true(say(host.ids[(i * 7) % ASKED_MAX], "hello"));
	run_until_count(base, &count, ASKED_MAX);
	for (size_t i = 0; i < ASKED_MAX; i++)
		assert_hello(&outcomes[i]);
}

/* A recording stands before the host, too. */
static void test_recorded(void **state)
{
	struct rlmd_provider_options options = options_of();
	char dir[] = "/tmp/rlmd-kept-XXXXXX", *path;
	struct outcome outcome;
	struct dirent *entry;
	DIR *files;

	(void)state;
	close_all();
	assert_non_null(mkdtemp(dir));
	host.act = say_hello;
	open_with(&options, &(struct llm_config){.record_dir = dir});
	outcome = ask();
	assert_hello(&outcome);
	close_all();
	open_with(&options, &(struct llm_config){.replay_dir = dir});
	outcome = ask();
	assert_hello(&outcome);
	assert_int_equal(host.asked, 1);
	files = opendir(dir);
	while ((entry = readdir(files))) {
		path = xasprintf("%s/%s", dir, entry->d_name);
		unlink(path);
		free(path);
	}
	closedir(files);
	rmdir(dir);
}

/* It costs what its settings say: nothing, or what nobody knows. */
static void test_price(void **state)
{
	struct rlmd_provider_options options = options_of();
	int64_t cost;

	(void)state;
	assert_true(llm_price(llm, "m", 1, 0, &cost));
	assert_int_equal(cost, 1000000);
	assert_false(llm_price(llm, "n", 1, 0, &cost));
	assert_int_equal(llm_window(llm, "n"), 128000);
	close_all();
	options.price_table = NULL;
	options.costs_nothing = true;
	options.window = 4096;
	open_with(&options, &(struct llm_config){0});
	assert_true(llm_price(llm, "n", 1, 0, &cost));
	assert_int_equal(cost, 0);
	assert_int_equal(llm_window(llm, "n"), 4096);
}

/* Freed with its call under way: the host hears of that, and of nothing more. */
static void test_cancel_sweep(void **state)
{
	bool complete = false;

	(void)state;
	host.act = fail_twice;
	for (int n = 0; !complete; n++) {
		struct outcome outcome = {0};

		host.asked = 0;
		start(&outcome);
		for (int i = 0; i < n && !outcome.done; i++)
			event_base_loop(base, EVLOOP_ONCE);
		complete = outcome.done;
		if (!complete)
			llm_cancel(outcome.call, NULL, NULL);
	}
}

static void assert_refused(const struct rlmd_provider_options *options, const char *words)
{
	struct rlmd_error err = {0};

	assert_null(rlmd_provider_new(options, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	if (!strstr(err.text, words))
		fail_msg("%s", err.text);
}

static void test_bad_options(void **state)
{
	struct rlmd_provider_options options = options_of();

	(void)state;
	assert_refused(NULL, "needs a kind");
	options.size = 8;
	assert_refused(&options, "size");
	options = options_of();
	options.kind = "openai";
	assert_refused(&options, "needs a kind");
	options.ask = NULL;
	options.kind = "opnai";
	assert_refused(&options, "unknown provider 'opnai'");
	options = options_of();
	options.name = NULL;
	assert_refused(&options, "a name");
	options.name = "a/b";
	assert_refused(&options, "no name for a provider");
	options.name = "mine";
	options.window = -1;
	assert_refused(&options, "negative");
	assert_null(rlmd_provider_ref(NULL));
	rlmd_provider_unref(NULL);
	assert_string_equal(rlmd_provider_name(NULL), "");
	assert_string_equal(rlmd_provider_name(provider), "mine");
	assert_false(rlmd_provider_delta(NULL, 1, rlmd_text_of("x")));
}

static void test_kinds(void **state)
{
	size_t count = 0;

	(void)state;
	for (; rlmd_provider_kind(count); count++)
		assert_non_null(rlmd_provider_key_variable(rlmd_provider_kind(count), 0));
	assert_int_equal(count, 3);
	assert_string_equal(rlmd_provider_key_variable("openai", 0), "OPENAI_API_KEY");
	assert_null(rlmd_provider_key_variable("openai", 1));
	assert_null(rlmd_provider_key_variable("nobody", 0));
	assert_null(rlmd_provider_key_variable(NULL, 0));
}

/* The price table by itself. */
static void test_price_table(void **state)
{
	struct rlmd_error err = {0};
	struct rlmd_price_table *table = rlmd_price_table_open(prices, &err);
	struct rlmd_tokens tokens = {.size = sizeof tokens, .input = 10, .output = 3};
	struct rlmd_price price = {.size = sizeof price};
	int64_t cost = -1;

	(void)state;
	assert_non_null(table);
	assert_string_equal(rlmd_price_table_date(table), "unknown");
	assert_true(rlmd_price_find(table, "mine", "m", &price));
	assert_int_equal(price.size, sizeof price);
	assert_int_equal(price.output, 2000000);
	assert_true(rlmd_price_cost(table, "mine", "m", &tokens, &cost));
	assert_int_equal(cost, 16000000);
	assert_false(rlmd_price_cost(table, "mine", "n", &tokens, &cost));
	assert_int_equal(cost, 0);
	tokens.cache_read = -1;
	assert_false(rlmd_price_cost(table, "mine", "m", &tokens, &cost));
	tokens.cache_read = INT64_MAX;
	assert_false(rlmd_price_cost(table, "mine", "m", &tokens, &cost));
	tokens.size = 1;
	assert_false(rlmd_price_cost(table, "mine", "m", &tokens, &cost));
	assert_false(rlmd_price_cost(table, "mine", "m", NULL, &cost));
	assert_false(rlmd_price_cost(table, NULL, "m", &tokens, &cost));
	assert_false(rlmd_price_cost(NULL, "mine", "m", &tokens, &cost));
	assert_false(rlmd_price_cost(table, "mine", "m", &tokens, NULL));
	assert_false(rlmd_price_find(table, "mine", "m", NULL));
	price.size = 1;
	assert_false(rlmd_price_find(table, "mine", "m", &price));
	rlmd_price_table_unref(table);
	rlmd_price_table_unref(NULL);
	assert_string_equal(rlmd_price_table_date(NULL), "unknown");
	assert_null(rlmd_price_table_open("/nonexistent/prices", &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	assert_non_null(strstr(err.text, "/nonexistent/prices"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_at_once),  TEST(test_later),        TEST(test_fields),
		TEST(test_no_usage), TEST(test_harmless),     TEST(test_cancelled),
		TEST(test_deadline), TEST(test_retried),      TEST(test_failures),
		TEST(test_overlong), TEST(test_many),         TEST(test_recorded),
		TEST(test_price),    TEST(test_cancel_sweep), TEST(test_bad_options),
		TEST(test_kinds),    TEST(test_price_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
