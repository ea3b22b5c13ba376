/* cli/batch_settings: the command lines of rlmd batch and rlmd work that make sense, and the
 * others. */
#include "cli/batch_settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "directory.h"

enum { ARGUMENTS_MAX = 16 };

static struct config config;
static int count;
static char *words[ARGUMENTS_MAX + 1];

static int enter(void **state)
{
	(void)state;
	config_init(&config);
	return directory_enter() || !file_write("jobs", text_of("{}\n"), NULL);
}

static int leave(void **state)
{
	(void)state;
	config_done(&config);
	return directory_leave((const char *const[]){"link", "jobs", NULL});
}

/* The settings that a command line makes, and its words. */
static void parse(enum command_id command, const char *const *arguments)
{
	char *argv[ARGUMENTS_MAX + 1] = {(char *)command_table[command].name};
	struct rlmd_error err = {0};
	int argc = 1, first;

	for (; arguments[argc - 1]; argc++)
		argv[argc] = (char *)arguments[argc - 1];
	config_done(&config);
	config_init(&config);
	if (!config_arguments(&config, command, argc, argv, &first, &err))
		fail_msg("%s", err.text);
	count = argc - first;
	memcpy(words, argv + first, (size_t)(count + 1) * sizeof *words);
}

#define ARGUMENTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void check(enum command_id command, const char *const *arguments, const char *wrong)
{
	struct rlmd_error err = {0};
	bool ok;

	parse(command, arguments);
	ok = command == COMMAND_BATCH ? batch_settings_check_batch(&config, count, words, &err)
				      : batch_settings_check_work(&config, count, words, &err);
	if (ok != !wrong || (wrong && !strstr(err.text, wrong)))
		fail_msg("%s, not %s", ok ? "taken" : err.text, wrong ? wrong : "taken");
	assert_int_equal(err.kind, wrong ? RLMD_ERROR_USAGE : RLMD_ERROR_NONE);
}

static void test_command_line_of_batch(void **state)
{
	(void)state;
	check(COMMAND_BATCH, ARGUMENTS("jobs", "-o", "results"), NULL);
	check(COMMAND_BATCH, ARGUMENTS("jobs", "--submit", "--store", "s"), NULL);
	check(COMMAND_BATCH, ARGUMENTS("-o", "results"), "and 0 were named");
	check(COMMAND_BATCH, ARGUMENTS("jobs", "more", "-o", "results"), "and 2 were named");
	check(COMMAND_BATCH, ARGUMENTS("jobs"), "-o says where the results");
	check(COMMAND_BATCH, ARGUMENTS("jobs", "--submit"), "--submit needs --store, and no -o");
	check(COMMAND_BATCH, ARGUMENTS("jobs", "--submit", "--store", "s", "-o", "r"),
	      "--submit needs --store, and no -o");
	check(COMMAND_BATCH, ARGUMENTS("jobs", "-o", "-"), "not to standard output");
	check(COMMAND_BATCH, ARGUMENTS("-o", "results", "-"), "not from standard input");
}

/* Results or a store that would be written over the jobs, by whatever name. */
static void test_apart_from_the_jobs(void **state)
{
	(void)state;
	assert_int_equal(symlink("jobs", "link"), 0);
	check(COMMAND_BATCH, ARGUMENTS("jobs", "-o", "./jobs"),
	      "-o ./jobs is the jobs file itself");
	check(COMMAND_BATCH, ARGUMENTS("link", "-o", "jobs"), "is the jobs file itself");
	check(COMMAND_BATCH, ARGUMENTS("jobs", "-o", "r", "--store", "link"),
	      "the store, link, is");
	check(COMMAND_BATCH, ARGUMENTS("jobs", "-o", "r", "--store", "sqlite:jobs"),
	      "the store, jobs, is the jobs file itself");
	check(COMMAND_BATCH, ARGUMENTS("missing", "-o", "missing"), NULL); /* its reader says why */
}

static void test_command_line_of_work(void **state)
{
	(void)state;
	check(COMMAND_WORK, ARGUMENTS("--store", "s"), NULL);
	check(COMMAND_WORK, ARGUMENTS("--store", "s", "--root", "/"), NULL);
	check(COMMAND_WORK, ARGUMENTS("--batch", "b"), "--store says where the jobs are");
	check(COMMAND_WORK, ARGUMENTS("--store", "s", "name"), "'name' is one word too many");
	check(COMMAND_WORK, ARGUMENTS("--store", "s", "--root", "/", "--allow-outside"),
	      "exclude each other");
}

static void test_store(void **state)
{
	static const struct {
		const char *given, *wanted;
	} stores[] = {
		{NULL, "sqlite:postgres:r.store"},
		{"s", "s"},
		{"postgres://host/name", "postgres://host/name"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
		const char *given = stores[i].given;
		struct batch_settings settings;

		parse(COMMAND_BATCH,
		      ARGUMENTS("jobs", "-o", "postgres:r", given ? "--store" : NULL, given));
		assert_true(batch_settings_read(&config, &settings, NULL));
		assert_string_equal(settings.store, stores[i].wanted);
		batch_settings_done(&settings);
	}
}

static void test_halt(void **state)
{
	static const struct {
		const char *word;
		int64_t failures, percent;
	} words_taken[] = {{"1", 1, 0}, {"1000000", 1000000, 0}, {"1%", 3, 1}, {"100%", 3, 100}};
	static const char *const refused[] = {
		"0",   "0%",   "101%", "1000001", "99999999999999999999", "-1", "10 %",
		"1%%", "half", "%",    "1.5",
	};
	struct batch_settings settings;
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < sizeof words_taken / sizeof *words_taken; i++) {
		parse(COMMAND_BATCH, ARGUMENTS("-o", "r", "--halt", words_taken[i].word));
		assert_true(batch_settings_read(&config, &settings, NULL));
		assert_int_equal(settings.halt.failures, words_taken[i].failures);
		assert_int_equal(settings.halt.percent, words_taken[i].percent);
		batch_settings_done(&settings);
	}
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		parse(COMMAND_BATCH, ARGUMENTS("-o", "r", "--halt", refused[i]));
		assert_false(batch_settings_read(&config, &settings, &err));
		assert_int_equal(err.kind, RLMD_ERROR_USAGE);
		assert_non_null(strstr(err.text, "--halt takes"));
	}
	parse(COMMAND_BATCH, ARGUMENTS("-o", "r"));
	assert_true(batch_settings_read(&config, &settings, NULL));
	assert_int_equal(settings.halt.failures, 0);
	assert_int_equal(settings.halt.percent, 0);
	batch_settings_done(&settings);
}

/* A shard, and a tenant that has to be one where there are any. */
static void test_words(void **state)
{
	struct batch_settings settings;
	struct rlmd_error err;

	(void)state;
	parse(COMMAND_BATCH, ARGUMENTS("-o", "r", "--shard", "2/3", "--default-tenant", "any"));
	assert_true(batch_settings_read(&config, &settings, NULL));
	assert_int_equal(settings.shard.index, 2);
	assert_int_equal(settings.shard.count, 3);
	batch_settings_done(&settings);
	parse(COMMAND_BATCH, ARGUMENTS("-o", "r", "--shard", "4/3"));
	assert_false(batch_settings_read(&config, &settings, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_int_equal(strncmp(err.text, "--shard: ", 9), 0);
	parse(COMMAND_BATCH, ARGUMENTS("-o", "r", "--default-tenant", "any"));
	assert_true(tenants_set(&config.tenants, "other", "max-cost", "1", &err));
	assert_false(batch_settings_read(&config, &settings, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_int_equal(strncmp(err.text, "--default-tenant: ", 18), 0);
}

/* Of the batch as a whole; and the calls at once, which all commands may have settings of. */
static void test_limits(void **state)
{
	struct rlmd_amount limit;

	(void)state;
	parse(COMMAND_BATCH, ARGUMENTS("-o", "r"));
	limit = batch_settings_limit(&config);
	assert_int_equal(limit.cost, RLMD_UNLIMITED);
	assert_int_equal(limit.tokens, RLMD_UNLIMITED);
	batch_settings_set_parallel(&config);
	assert_int_equal(config.max_parallel, 16);
	parse(COMMAND_BATCH, ARGUMENTS("-o", "r", "--max-batch-tokens", "7", "--max-batch-cost",
				       "0", "--max-parallel", "5"));
	limit = batch_settings_limit(&config);
	assert_int_equal(limit.cost, 0);
	assert_int_equal(limit.tokens, 7);
	batch_settings_set_parallel(&config);
	assert_int_equal(config.max_parallel, 5);
	parse(COMMAND_BATCH, ARGUMENTS("-o", "r"));
	assert_true(config_set(&config, CONFIG_ENVIRONMENT, OPTION_max_parallel, "3", NULL));
	batch_settings_set_parallel(&config);
	assert_int_equal(config.max_parallel, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_command_line_of_batch, enter, leave),
		cmocka_unit_test_setup_teardown(test_apart_from_the_jobs, enter, leave),
		cmocka_unit_test_setup_teardown(test_command_line_of_work, enter, leave),
		cmocka_unit_test_setup_teardown(test_store, enter, leave),
		cmocka_unit_test_setup_teardown(test_halt, enter, leave),
		cmocka_unit_test_setup_teardown(test_words, enter, leave),
		cmocka_unit_test_setup_teardown(test_limits, enter, leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
