/* Whether a provider answers, and what a user is told where it does not. */
#include <event2/event.h>
#include <rlmd/provider.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "llm/provider.h"
#include "server.h"

enum { TIME_MS = 100000 };
#define KEY "sk-of-the-test-0123456789abcdef"

static struct event_base *base;
static struct server *server;

/* The outcome of one. */
static struct {
	struct rlmd_probe *probe;
	size_t results;
	bool asked, failed, free_inside;
	int status;
	char url[128];
	struct rlmd_error error;
} got;

static void on_result(void *owner, const struct rlmd_probe_result *result)
{
	assert_ptr_equal(owner, &got);
	assert_int_equal(result->size, sizeof *result);
	got.results++;
	got.asked = result->asked;
	got.status = result->status;
	got.failed = result->error;
	if (result->url)
		strncpy(got.url, result->url, sizeof got.url - 1);
	if (result->error)
		got.error = *result->error;
	if (got.free_inside) {
		rlmd_probe_free(got.probe);
		got.probe = NULL;
	}
}

static void start(const struct rlmd_provider_options *config, bool free_inside)
{
	struct rlmd_provider *provider = provider_new(config, NULL);

	assert_non_null(provider);
	memset(&got, 0, sizeof got);
	got.free_inside = free_inside;
	got.probe = rlmd_probe_start(base, provider, TIME_MS, on_result, &got, NULL);
	provider_unref(provider);
	assert_non_null(got.probe);
	assert_int_equal(got.results, 0);
}

static void probe(const struct rlmd_provider_options *config, bool free_inside)
{
	start(config, free_inside);
	run_until_count(base, &got.results, 1);
	rlmd_probe_free(got.probe);
	assert_int_equal(got.results, 1);
}

static struct rlmd_provider_options openai(void)
{
	return (struct rlmd_provider_options){
		.kind = "openai", .base_url = server->url, .key = KEY};
}

/* One request for the list of models, with the key. */
static void test_it_answers(void **state)
{
	struct rlmd_provider_options config = openai();

	(void)state;
	server_json(server, 200, "", "{\"data\": []}");
	probe(&config, false);
	assert_true(got.asked);
	assert_false(got.failed);
	assert_int_equal(got.status, 200);
	assert_memory_equal(got.url, server->url, strlen(server->url));
	assert_int_equal(server->requests, 1);
	assert_memory_equal(server->last, "GET ", 4);
	assert_non_null(strstr(server->last, KEY));
	probe(&config, true);
	assert_false(got.failed);
}

/* The provider's own words are told, but not the key that they quote. */
static void test_it_refuses(void **state)
{
	struct rlmd_provider_options config = openai();

	(void)state;
	server_json(server, 401, "", "{\"error\": {\"message\": \"no such key: " KEY "\"}}");
	probe(&config, false);
	assert_true(got.failed && got.asked);
	assert_int_equal(got.status, 401);
	assert_int_equal(got.error.kind, RLMD_ERROR_AUTH);
	assert_non_null(strstr(got.error.text, "HTTP 401: no such key"));
	assert_null(strstr(got.error.text, KEY));
}

static void test_nobody_listens(void **state)
{
	struct rlmd_provider_options config = openai();

	(void)state;
	config.base_url = "http://127.0.0.1:1";
	probe(&config, false);
	assert_true(got.failed && got.asked);
	assert_int_equal(got.status, 0);
	assert_int_equal(got.error.kind, RLMD_ERROR_NETWORK);
}

/* A probe that cannot be asked is a result, too, and comes from the loop. */
static void test_nothing_to_ask(void **state)
{
	struct rlmd_provider_options config = {.kind = "replay"};

	(void)state;
	probe(&config, false);
	assert_true(got.failed);
	assert_false(got.asked);
	assert_int_equal(got.error.kind, RLMD_ERROR_USAGE);
	config = openai();
	config.base_url = "no url";
	probe(&config, true);
	assert_true(got.failed);
	assert_false(got.asked);
	assert_int_equal(server->requests, 0);
}

/* Cancelled, it calls nobody; the provider is another's to use then. */
static void test_cancelled(void **state)
{
	struct rlmd_provider_options config = openai();

	(void)state;
	server_answer(server, "", SERVER_HOLD, 0);
	start(&config, false);
	run_until_count(base, &server->requests, 1);
	rlmd_probe_free(got.probe);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(got.results, 0);
	rlmd_probe_free(NULL);
}

static void test_bad_arguments(void **state)
{
	struct rlmd_error err = {0};

	(void)state;
	assert_null(rlmd_probe_start(base, NULL, TIME_MS, on_result, &got, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
}

static int setup(void **state)
{
	(void)state;
	base = event_base_new();
	server = server_new(base);
	server->lists = true;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	server_free(server);
	event_base_free(base);
	return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_it_answers),     TEST(test_it_refuses), TEST(test_nobody_listens),
		TEST(test_nothing_to_ask), TEST(test_cancelled),  TEST(test_bad_arguments),
	};

	return cmocka_run_group_tests_name("probe", tests, NULL, NULL);
}
