#include "llm/model_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "llm/provider.h"

static struct event_base *base;
static struct registry *registry;
static struct model_names names;

static void add(const char *kind, const char *name, const char *url, const char *key)
{
	struct rlmd_provider_options config = {
		.kind = kind, .name = name, .base_url = url, .key = key, .key_environment = ""};
	struct rlmd_error err = {0};
	struct rlmd_provider *provider = provider_new(&config, &err);

	assert_non_null(provider);
	if (!registry_add(registry, NULL, provider, &err))
		fail_msg("%s", err.text);
	provider_unref(provider);
}

static void begin(const char *own, bool closed)
{
	struct rlmd_error err = {0};

	if (!model_names_init(&names, registry, own, closed, &err))
		fail_msg("%s", err.text);
}

static void allow(const char *name)
{
	struct rlmd_error err = {0};

	if (!model_names_allow(&names, name, &err))
		fail_msg("%s", err.text);
}

static void assert_refused(const char *name, enum rlmd_error_kind kind, const char *words)
{
	struct rlmd_error err = {0};

	assert_false(model_names_allow(&names, name, &err));
	assert_int_equal(err.kind, kind);
	if (!strstr(err.text, words))
		fail_msg("%s", err.text);
}

static void assert_means(const char *name, const char *provider, const char *model)
{
	struct model_name found = model_names_find(&names, name);

	assert_string_equal(found.provider->name, provider);
	assert_string_equal(found.model, model);
}

static int setup(void **state)
{
	(void)state;
	unsetenv("OPENAI_BASE_URL");
	unsetenv("ANTHROPIC_BASE_URL");
	unsetenv("OLLAMA_HOST");
	base = event_base_new();
	registry = registry_new(base);
	add("anthropic", NULL, NULL, "a-key");
	add("openai", NULL, NULL, "o-key");
	add("openai", "openai-b", "http://127.0.0.1:1/v1", "another-key");
	add("ollama", NULL, NULL, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	model_names_done(&names);
	registry_free(registry);
	event_base_free(base);
	return 0;
}

/* A provider is meant only where it is one of those that may be used; else the name is a model. */
static void test_rule(void **state)
{
	(void)state;
	begin("anthropic", false);
	assert_means("openai/gpt-5-mini", "anthropic", "openai/gpt-5-mini");
	assert_means("claude", "anthropic", "claude");
	assert_means("anthropic/claude", "anthropic", "claude");
	allow("openai/gpt-5-mini");
	assert_means("openai/gpt-5-mini", "openai", "gpt-5-mini");
	assert_means("openai/any-other", "openai", "any-other");
	assert_means("openai-b/gpt", "anthropic", "openai-b/gpt");
	allow("openai-b/gpt");
	assert_means("openai-b/gpt", "openai-b", "gpt");
	assert_means("ollama/x:latest", "anthropic", "ollama/x:latest");
	allow("ollama/x:latest");
	assert_means("ollama/x:latest", "ollama", "x:latest");
}

/* Slashes, parts that are empty, prefixes that nobody knows, and other spellings. */
static void test_corners(void **state)
{
	static const char *const models[] = {
		"meta-llama/llama-3",
		"meta-llama/a/b/c",
		"/openai",
		"//",
		"/",
		"openai/",
		"OpenAI/gpt",
		"openai",
		"openai b/x",
		"nobody/gpt",
	};

	(void)state;
	begin("anthropic", false);
	allow("openai/a");
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		assert_means(models[i], "anthropic", models[i]);
	assert_means("openai/meta/llama/3", "openai", "meta/llama/3");
	assert_means("openai//x", "openai", "/x");
	assert_means("openai/openai/x", "openai", "openai/x");
	assert_means(NULL, "anthropic", "claude-sonnet-5");
	assert_means("", "anthropic", "claude-sonnet-5");
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		if (strcmp(models[i], "openai/") != 0)
			allow(models[i]);
	assert_int_equal(names.count, 2);
	allow(NULL);
	allow("");
	assert_refused("openai/", RLMD_ERROR_USAGE, "names a provider and no model");
}

/* Of a server that speaks OpenAI's protocol a name is a name, also one that begins like ours. */
static void test_gateway(void **state)
{
	(void)state;
	add("openai", "gate", "http://127.0.0.1:2/v1", NULL);
	begin("gate", false);
	assert_means("gate/x", "gate", "gate/x");
	allow("gate/x");
	allow("openai/gpt-oss-20b");
	assert_means("openai/gpt-oss-20b", "openai", "gpt-oss-20b");
	assert_int_equal(names.count, 2);
}

/* A model of a provider without a key is an error; of a gateway it may be a model. */
static void test_without_key(void **state)
{
	(void)state;
	add("openai", "keyless", NULL, NULL);
	begin("anthropic", false);
	assert_refused("keyless/gpt", RLMD_ERROR_AUTH, "no key for keyless");
	assert_means("keyless/gpt", "anthropic", "keyless/gpt");
	model_names_done(&names);
	begin("openai-b", false);
	allow("keyless/gpt");
	assert_means("keyless/gpt", "openai-b", "keyless/gpt");
	model_names_done(&names);
	begin("anthropic", true);
	allow("keyless/gpt");
	assert_means("keyless/gpt", "keyless", "gpt");
}

static void test_own(void **state)
{
	struct rlmd_error err = {0};

	(void)state;
	begin(NULL, false);
	assert_means(NULL, "anthropic", "claude-sonnet-5");
	model_names_done(&names);
	assert_false(model_names_init(&names, registry, "nobody", false, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(err.text, "'nobody'"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_rule),        TEST(test_corners), TEST(test_gateway),
		TEST(test_without_key), TEST(test_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
