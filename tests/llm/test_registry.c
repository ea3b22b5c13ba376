#include "llm/registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "llm/llm.h"
#include "llm/provider.h"
#include "server.h"

static const char hello[] =
	"{\"model\":\"m\",\"choices\":[{\"message\":{\"content\":\"hello\"},"
	"\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3}}";

static struct event_base *base;
static struct registry *registry;

static int setup(void **state)
{
	(void)state;
	base = event_base_new();
	registry = registry_new(base);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	registry_free(registry);
	event_base_free(base);
	return 0;
}

static struct rlmd_provider *make(struct rlmd_provider_options config)
{
	struct rlmd_error err = {0};
	struct rlmd_provider *provider = provider_new(&config, &err);

	if (!provider)
		fail_msg("%s", err.text);
	return provider;
}

static void add(struct rlmd_provider_options config)
{
	struct rlmd_provider *provider = make(config);

	assert_true(registry_add(registry, NULL, provider, NULL));
	provider_unref(provider);
}

static void assert_not_added(const char *name, struct rlmd_provider *provider, const char *words)
{
	struct rlmd_error err = {0};

	assert_false(registry_add(registry, name, provider, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	if (!strstr(err.text, words))
		fail_msg("%s", err.text);
}

static struct rlmd_provider *find(const char *name)
{
	return registry_find(registry, text_of(name));
}

static void test_names(void **state)
{
	struct registry *other = registry_new(base);
	struct rlmd_provider *one = make((struct rlmd_provider_options){.kind = "openai"});
	struct rlmd_provider *two = make((struct rlmd_provider_options){.kind = "openai"});

	(void)state;
	assert_null(find(""));
	assert_true(registry_add(registry, NULL, one, NULL));
	assert_not_added(NULL, two, "already");
	assert_not_added("", two, "no name");
	assert_not_added("a/b", two, "no name");
	assert_not_added("a b", two, "no name");
	assert_true(registry_add(registry, "openai-b", two, NULL));
	assert_ptr_equal(find("openai"), one);
	assert_ptr_equal(find("openai-b"), two);
	assert_string_equal(two->name, "openai-b");
	assert_ptr_equal(find(""), one);
	assert_null(find("openai-"));
	assert_ptr_equal(one->shipped, two->shipped);
	assert_not_added("again", one, "in use");
	assert_false(registry_add(other, NULL, one, NULL));
	registry_free(registry);
	registry = NULL;
	assert_true(registry_add(other, NULL, one, NULL)); /* free again */
	/* Beside this program there are no prices, which is said of each once. */
	assert_int_equal(json_array_size(one->notes), 1);
	assert_int_equal(json_array_size(two->notes), 1);
	registry_free(other);
	provider_unref(one);
	provider_unref(two);
}

struct outcome {
	struct rlmd_error error;
	size_t *count;
};

static void on_answer(void *owner, const struct llm_response *response,
		      const struct rlmd_error *err)
{
	struct outcome *outcome = owner;

	(void)response;
	if (err)
		outcome->error = *err;
	++*outcome->count;
}

static void start(struct llm *llm, const char *model, struct outcome *outcome)
{
	static struct llm_message message; /* for as long as the call lasts */

	message = (struct llm_message){LLM_USER, text_of("hi")};
	llm_start(llm,
		  &(struct llm_request){.model = model,
					.messages = &message,
					.message_count = 1,
					.max_tokens = 10,
					.deadline = clock_ms() + 100000},
		  on_answer, outcome);
}

/* Where no prices stand beside the program, which is told first. */
static struct llm *job(struct llm_config config)
{
	struct rlmd_error err = {0};
	struct llm *llm = llm_new(registry, &config, &err);

	if (!llm)
		fail_msg("%s", err.text);
	json_decref(llm_take_warnings(llm));
	return llm;
}

/* Each server sees its own key and models of its own; a key that one of them refuses closes none of
 * the others, nor another of its kind; each job hears of what concerns it. */
static void test_several(void **state)
{
	struct server *first = server_new(base), *second = server_new(base);
	struct outcome outcomes[3] = {0};
	struct llm *one, *two;
	size_t count = 0;
	json_t *warnings;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		outcomes[i].count = &count;
	server_json(first, 401, "", "{\"error\":{\"message\":\"bad key\"}}");
	server_json(second, 200, "", hello);
	add((struct rlmd_provider_options){
		.kind = "openai", .name = "a", .base_url = first->url, .key = "key-of-a"});
	add((struct rlmd_provider_options){
		.kind = "openai", .name = "b", .base_url = second->url, .key = "key-of-b"});
	one = job((struct llm_config){.provider = "a", .model = "m-1"});
	two = job((struct llm_config){.provider = "b", .model = "m-2"});
	assert_true(llm_allow(one, "b/m-3", NULL));
	start(one, NULL, &outcomes[0]);
	start(one, "b/m-3", &outcomes[1]);
	run_until_count(base, &count, 2);
	assert_int_equal(outcomes[0].error.kind, RLMD_ERROR_AUTH);
	assert_int_equal(outcomes[1].error.kind, RLMD_ERROR_NONE);
	assert_non_null(strstr(first->last, "Bearer key-of-a"));
	assert_non_null(strstr(first->last, "\"model\":\"m-1\""));
	assert_non_null(strstr(second->last, "Bearer key-of-b"));
	assert_non_null(strstr(second->last, "\"model\":\"m-3\""));
	warnings = llm_take_warnings(two);
	assert_int_equal(json_array_size(warnings), 0);
	json_decref(warnings);
	warnings = llm_take_warnings(one);
	assert_int_equal(json_array_size(warnings), 1);
	assert_non_null(strstr(json_string_value(json_array_get(warnings, 0)), "'m-3'"));
	json_decref(warnings);
	start(two, NULL, &outcomes[2]);
	run_until_count(base, &count, 3);
	assert_int_equal(outcomes[2].error.kind, RLMD_ERROR_NONE);
	assert_non_null(strstr(second->last, "\"model\":\"m-2\""));
	assert_string_equal(llm_provider(one, "b/m-3"), "b");
	assert_string_equal(llm_provider(two, "a/m-1"), "b");
	llm_free(one);
	llm_free(two);
	server_free(first);
	server_free(second);
}

/* Two jobs of one provider are warned of what the model refuses, though only one found it out. */
static void test_quirk_of_another(void **state)
{
	struct server *server = server_new(base);
	struct outcome outcome = {0};
	size_t count = 0;

	(void)state;
	outcome.count = &count;
	server_json(server, 400, "",
		    "{\"error\":{\"message\":\"Unsupported parameter: 'temperature'\","
		    "\"param\":\"temperature\",\"code\":\"unsupported_parameter\"}}");
	server_json(server, 200, "", hello);
	add((struct rlmd_provider_options){.kind = "openai", .name = "a", .base_url = server->url});
	for (size_t i = 1; i <= 2; i++) {
		struct llm *llm = job((struct llm_config){.model = "m"});
		struct llm_message message = {LLM_USER, text_of("hi")};
		json_t *warnings;

		llm_start(llm,
			  &(struct llm_request){.messages = &message,
						.message_count = 1,
						.max_tokens = 10,
						.sampling = {.with_temperature = true},
						.deadline = clock_ms() + 100000},
			  on_answer, &outcome);
		run_until_count(base, &count, i);
		assert_int_equal(outcome.error.kind, RLMD_ERROR_NONE);
		warnings = llm_take_warnings(llm);
		assert_non_null(strstr(json_string_value(json_array_get(warnings, 0)),
				       "refuses a temperature"));
		json_decref(warnings);
		llm_free(llm);
	}
	assert_int_equal(server->requests, 3);
	server_free(server);
}

/* A key of the environment is there for whoever comes later, too. */
static void test_environment_twice(void **state)
{
	struct server *server = server_new(base);
	char *url = xasprintf("%s/v1", server->url);
	struct outcome outcome = {0};
	size_t count = 0;

	(void)state;
	outcome.count = &count;
	server_json(server, 200, "", hello);
	setenv("OPENAI_API_KEY", "key-of-the-environment", 1);
	setenv("OPENAI_BASE_URL", url, 1);
	for (size_t i = 1; i <= 3; i++) {
		struct llm *llm;

		registry_free(registry);
		registry = registry_new(base);
		add((struct rlmd_provider_options){.kind = "openai"});
		llm = job((struct llm_config){.model = "m"});
		start(llm, NULL, &outcome);
		run_until_count(base, &count, i);
		assert_int_equal(outcome.error.kind, RLMD_ERROR_NONE);
		assert_non_null(strstr(server->last, "Bearer key-of-the-environment"));
		llm_free(llm);
	}
	assert_string_equal(getenv("OPENAI_API_KEY"), "key-of-the-environment");
	unsetenv("OPENAI_API_KEY");
	unsetenv("OPENAI_BASE_URL");
	server_free(server);
	free(url);
}

enum { SERVERS = 4, HOSTS = 4, JOBS = 64, CALLS = 3 };

static struct rlmd_provider *hosts[HOSTS];

/* Answers with the name of the provider that was asked, and the model's. */
static void on_host(void *owner, const struct rlmd_model_request *request)
{
	struct rlmd_provider **host = owner;
	char *words = xasprintf("%s %s", rlmd_provider_name(*host), request->model);

	rlmd_provider_answer(*host, request->id,
			     &(struct rlmd_model_answer){
				     .size = sizeof(struct rlmd_model_answer),
				     .text = rlmd_text_of(words),
			     });
	free(words);
}

struct exchange_of {
	char wanted[64];
	size_t *count;
};

static void on_words(void *owner, const struct llm_response *response, const struct rlmd_error *err)
{
	struct exchange_of *exchange = owner;

	if (err)
		fail_msg("%s", err->text);
	if (!text_equal(response->text, exchange->wanted))
		fail_msg("'%.*s', wanted '%s'", (int)response->text.size, response->text.bytes,
			 exchange->wanted);
	++*exchange->count;
}

/* Each of 64 jobs asks two of eight providers at once, and gets what it asked for from whom it
 * asked; each server sees its own key only. */
static void test_many_jobs(void **state)
{
	static struct exchange_of exchanges[JOBS * CALLS];
	struct server *servers[SERVERS];
	struct llm *jobs[JOBS];
	struct llm_message message = {LLM_USER, text_of("hi")};
	size_t count = 0;

	(void)state;
	for (int i = 0; i < SERVERS; i++) {
		char *name = xasprintf("s%d", i), *key = xasprintf("the-key-of-s%d", i);
		char *body = xasprintf("{\"choices\":[{\"message\":{\"content\":\"s%d\"},"
				       "\"finish_reason\":\"stop\"}]}",
				       i);

		servers[i] = server_new(base);
		server_json(servers[i], 200, "", body);
		add((struct rlmd_provider_options){
			.kind = "openai", .name = name, .base_url = servers[i]->url, .key = key});
		free(name);
		free(key);
		free(body);
	}
	for (int i = 0; i < HOSTS; i++) {
		char *name = xasprintf("h%d", i);

		hosts[i] = rlmd_provider_new(
			&(struct rlmd_provider_options){
				.size = sizeof(struct rlmd_provider_options),
				.name = name,
				.ask = on_host,
				.owner = &hosts[i]},
			NULL);
		assert_true(registry_add(registry, NULL, hosts[i], NULL));
		free(name);
	}
	for (int i = 0; i < JOBS; i++) {
		char own[8], other[32];

		snprintf(own, sizeof own, i % 8 < SERVERS ? "s%d" : "h%d", i % 4);
		snprintf(other, sizeof other, i % 8 < SERVERS ? "h%d/m-%d" : "s%d/m-%d", i / 8 % 4,
			 i);
		jobs[i] = job((struct llm_config){.provider = own, .model = "m"});
		assert_true(llm_allow(jobs[i], other, NULL));
		for (int k = 0; k < CALLS; k++) {
			struct exchange_of *exchange = &exchanges[i * CALLS + k];
			const char *model = k % 2 ? other : "m";
			const char *name = k % 2 ? other : own;

			exchange->count = &count;
			snprintf(exchange->wanted, sizeof exchange->wanted,
				 *name == 's' ? "%.2s" : "%.2s %s", name,
				 k % 2 ? strchr(other, '/') + 1 : "m");
			llm_start(jobs[i],
				  &(struct llm_request){.model = model,
							.messages = &message,
							.message_count = 1,
							.max_tokens = 10,
							.deadline = clock_ms() + 100000},
				  on_words, exchange);
		}
	}
	run_until_count(base, &count, JOBS * CALLS);
	for (int i = 0; i < SERVERS; i++) {
		char *key = xasprintf("Bearer the-key-of-s%d\r\n", i);

		assert_non_null(strstr(servers[i]->last, key));
		assert_int_equal(servers[i]->requests, JOBS * CALLS / 8);
		free(key);
	}
	for (int i = 0; i < JOBS; i++)
		llm_free(jobs[i]);
	for (int i = 0; i < HOSTS; i++)
		rlmd_provider_unref(hosts[i]);
	registry_free(registry);
	registry = NULL;
	for (int i = 0; i < SERVERS; i++)
		server_free(servers[i]);
}

/* The price of a model under a provider's name goes before that of its kind's. */
static void test_price_by_name(void **state)
{
	static const char rows[] =
		"{\"gpt\": {\"input_cost_per_token\": 1e-6, \"output_cost_per_token\": 1e-6},"
		" \"b/gpt\": {\"input_cost_per_token\": 5e-6, \"output_cost_per_token\": 1e-6}}";
	char path[] = "/tmp/rlmd-prices-XXXXXX";
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");
	struct llm *llm;
	int64_t cost;

	(void)state;
	fputs(rows, file);
	fclose(file);
	add((struct rlmd_provider_options){
		.kind = "openai", .name = "a", .key = "k", .price_table = path});
	add((struct rlmd_provider_options){
		.kind = "openai", .name = "b", .key = "k", .price_table = path});
	llm = job((struct llm_config){0});
	assert_true(llm_allow(llm, "b/gpt", NULL));
	assert_true(llm_price(llm, "gpt", 1, 0, &cost));
	assert_int_equal(cost, 1000000);
	assert_true(llm_price(llm, "b/gpt", 1, 0, &cost));
	assert_int_equal(cost, 5000000);
	llm_free(llm);
	remove(path);
}

static void on_probe(void *owner, const struct rlmd_probe_result *result)
{
	*(enum rlmd_error_kind *)owner = result->error ? result->error->kind : RLMD_ERROR_NONE;
}

/* However much time there is: it is not over at once. */
static void test_patient_probe(void **state)
{
	const struct rlmd_provider_options options = {
		.size = sizeof options,
		.kind = "openai",
		.key = "sk-a",
		.base_url = "http://127.0.0.1:1", /* nobody's, and refused at once */
	};
	struct rlmd_provider *provider = rlmd_provider_new(&options, NULL);
	enum rlmd_error_kind kind = RLMD_ERROR_INTERNAL;
	struct rlmd_probe *probe;

	(void)state;
	probe = rlmd_probe_start(base, provider, INT64_MAX, on_probe, &kind, NULL);
	while (kind == RLMD_ERROR_INTERNAL)
		event_base_loop(base, EVLOOP_ONCE);
	assert_int_equal(kind, RLMD_ERROR_NETWORK);
	rlmd_probe_free(probe);
	rlmd_provider_unref(provider);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_names),         TEST(test_several),           TEST(test_quirk_of_another),
		TEST(test_price_by_name), TEST(test_environment_twice), TEST(test_many_jobs),
		TEST(test_patient_probe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
