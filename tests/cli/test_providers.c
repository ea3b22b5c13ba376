/* cli/providers: who is asked, with which key, and that no key outlives that in the environment. */
#include "cli/providers.h"

#include <rlmd/engine.h>
#include <rlmd/provider.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/alloc.h"

static struct config config;

static int enter(void **state)
{
	(void)state;
	config_init(&config);
	setenv("OPENAI_API_KEY", "sk-secret", 1);
	setenv("ANTHROPIC_API_KEY", "sk-other", 1);
	return !config_set(&config, CONFIG_ARGUMENT, OPTION_provider, "openai", NULL);
}

static int leave(void **state)
{
	(void)state;
	config_done(&config);
	return 0;
}

/* Not even in the bytes that the kernel shows of it. */
static void test_keys_are_forgotten(void **state)
{
	const char *value = getenv("OPENAI_API_KEY");

	(void)state;
	providers_forget_keys();
	assert_null(getenv("OPENAI_API_KEY"));
	assert_null(getenv("ANTHROPIC_API_KEY"));
	assert_int_equal(*value, '\0');
}

/* Also where a provider cannot be had. */
static void test_open(void **state)
{
	const struct rlmd_engine_options options = {.size = sizeof options};
	struct rlmd_engine *engine = rlmd_engine_new(&options, NULL);
	struct rlmd_error err;

	(void)state;
	assert_true(providers_open(engine, &config, NULL));
	assert_null(getenv("OPENAI_API_KEY"));
	rlmd_engine_free(engine);
	engine = rlmd_engine_new(&options, NULL);
	setenv("OPENAI_API_KEY", "sk-secret", 1);
	assert_true(config_set(&config, CONFIG_ARGUMENT, OPTION_price_table, "/nowhere", NULL));
	assert_false(providers_open(engine, &config, &err));
	assert_null(getenv("OPENAI_API_KEY"));
	rlmd_engine_free(engine);
}

/* Another one of the same kind may be had, and of an unknown kind none. */
static void test_another(void **state)
{
	struct rlmd_provider *provider = providers_own(&config, NULL);
	struct rlmd_error err;

	(void)state;
	assert_non_null(provider);
	rlmd_provider_unref(provider);
	provider = providers_other(&config, "openai", NULL, NULL);
	assert_non_null(provider);
	rlmd_provider_unref(provider);
	assert_null(providers_other(&config, "none", NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
}

/* A key file makes the model's first word the provider, whose own key need not be set. */
static void test_where_none_is_named(void **state)
{
	(void)state;
	providers_forget_keys();
	config_done(&config);
	config_init(&config);
	assert_string_equal(providers_usual(&config), "ollama");
	assert_true(config_set(&config, CONFIG_ARGUMENT, OPTION_model, "anthropic/m", NULL));
	assert_string_equal(providers_usual(&config), "ollama");
	assert_true(config_set(&config, CONFIG_ARGUMENT, OPTION_key_file, "key", NULL));
	assert_string_equal(providers_usual(&config), "anthropic");
	assert_true(config_set(&config, CONFIG_ARGUMENT, OPTION_model, "anthropical/m", NULL));
	assert_string_equal(providers_usual(&config), "ollama");
	assert_true(config_set(&config, CONFIG_ARGUMENT, OPTION_model, "anthropic/m", NULL));
	assert_true(config_set(&config, CONFIG_ARGUMENT, OPTION_base_url, "http://h", NULL));
	assert_string_equal(providers_usual(&config), "ollama"); /* the key is that server's */
	setenv("OPENAI_API_KEY", "sk-secret", 1);
	assert_string_equal(providers_usual(&config), "openai");
}

static void test_is_unnamed(void **state)
{
	(void)state;
	assert_false(providers_is_unnamed(&config)); /* the option was given */
	config_done(&config);
	config_init(&config);
	config.provider = xstrdup("openai");
	assert_true(providers_is_unnamed(&config));
	assert_true(config_set(&config, CONFIG_ARGUMENT, OPTION_model, "openai/m", NULL));
	assert_false(providers_is_unnamed(&config));
	assert_true(config_set(&config, CONFIG_ARGUMENT, OPTION_model, "m", NULL));
	assert_true(providers_is_unnamed(&config));
	assert_true(config_set(&config, CONFIG_ARGUMENT, OPTION_replay, "dir", NULL));
	assert_false(providers_is_unnamed(&config));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_keys_are_forgotten, enter, leave),
		cmocka_unit_test_setup_teardown(test_open, enter, leave),
		cmocka_unit_test_setup_teardown(test_another, enter, leave),
		cmocka_unit_test_setup_teardown(test_where_none_is_named, enter, leave),
		cmocka_unit_test_setup_teardown(test_is_unnamed, enter, leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
