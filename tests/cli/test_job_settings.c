/* cli/job_settings: a job's options, limits and sandbox, of settings that were given or not. */
#include "cli/job_settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

static struct config config, copy;

static int set_up(void **state)
{
	(void)state;
	config_init(&config);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	config_done(&config);
	return 0;
}

static void set(enum option_id id, const char *value)
{
	assert_true(config_set(&config, CONFIG_ARGUMENT, id, value, NULL));
}

static void test_defaults(void **state)
{
	struct rlmd_job_options options = job_settings_options(&config);
	struct rlmd_limits limits = job_settings_limits(&config, 7);

	(void)state;
	assert_null(options.model);
	assert_false(options.with_temperature);
	assert_int_equal(options.max_parallel, 0);
	assert_int_equal(limits.cost, 0); /* the library's */
	assert_int_equal(limits.time_ms, 7);
	assert_int_equal(limits.max_depth, 2);
	assert_string_equal(job_settings_sandbox(&config).python, "python3");
}

/* To a job 0 means its default, and nothing means RLMD_NOTHING. */
static void test_zeros_that_were_given(void **state)
{
	struct rlmd_job_options options;

	(void)state;
	set(OPTION_max_cost, "0");
	set(OPTION_max_subruns, "0");
	set(OPTION_grace, "0");
	set(OPTION_temperature, "0");
	set(OPTION_stop, "END");
	set(OPTION_worker_memory, "100M");
	options = job_settings_options(&config);
	assert_int_equal(job_settings_limits(&config, 1).cost, RLMD_NOTHING);
	assert_int_equal(job_settings_limits(&config, 1).subruns, RLMD_NOTHING);
	assert_int_equal(options.grace_ms, RLMD_NOTHING);
	assert_true(options.with_temperature);
	assert_string_equal(options.stops[0], "END");
	assert_null(options.stops[1]);
	assert_int_equal(job_settings_sandbox(&config).worker_memory, 100 << 20);
}

/* A job's settings stand over those that were copied, which stay as they are. */
static void test_a_copy(void **state)
{
	(void)state;
	set(OPTION_model, "ours");
	set(OPTION_stop, "A");
	set(OPTION_stop, "B");
	config_copy(&copy, &config);
	assert_true(config_set(&copy, CONFIG_JOB, OPTION_model, "theirs", NULL));
	assert_int_equal(copy.stop.count, 2);
	assert_true(config_set(&copy, CONFIG_JOB, OPTION_stop, "C", NULL));
	assert_string_equal(copy.model, "theirs");
	assert_int_equal(copy.stop.count, 1);
	assert_string_equal(copy.stop.items[0], "C");
	assert_string_equal(copy.python, "python3");
	config_done(&copy);
	assert_string_equal(config.model, "ours");
	assert_int_equal(config.stop.count, 2);
	assert_string_equal(config.stop.items[1], "B");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_defaults),
		TEST(test_zeros_that_were_given),
		TEST(test_a_copy),
	};

	alloc_install();
	return cmocka_run_group_tests_name("job_settings", tests, NULL, NULL);
}
