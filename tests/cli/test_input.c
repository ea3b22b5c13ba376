/* cli/input: what a command line asks, and about what. */
#include "cli/input.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "told.h"

static struct config config;
static struct input input;

static int enter(void **state)
{
	(void)state;
	config_init(&config);
	input = (struct input){0};
	return 0;
}

static int leave(void **state)
{
	(void)state;
	config_done(&config);
	input_done(&input);
	return 0;
}

static void set(enum option_id id, const char *value)
{
	assert_true(config_set(&config, CONFIG_ARGUMENT, id, value, NULL));
}

static void assert_words(const char *wrong, int count, const char *first, const char *second)
{
	char *words[] = {(char *)(uintptr_t)first, (char *)(uintptr_t)second, NULL};
	struct rlmd_error err = {0};

	assert_int_equal(input_check_words(&config, count, words, &err), !wrong);
	if (!wrong)
		return;
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(err.text, wrong));
}

static void test_one_task(void **state)
{
	(void)state;
	assert_words("there is no task", 0, NULL, NULL);
	assert_words(NULL, 1, "task", NULL);
	assert_words("'more' is one word too many", 2, "task", "more");
	set(OPTION_task_file, "file");
	assert_words(NULL, 0, NULL, NULL);
	assert_words("there are two tasks: 'task'", 1, "task", NULL);
}

/* Options about the files of a directory mean this one; a setting in a file does not. */
static void test_an_implied_directory(void **state)
{
	(void)state;
	input_imply_directory(&config);
	assert_int_equal(config.contexts.count, 0);
	assert_true(config_set(&config, CONFIG_USER_FILE, OPTION_max_file_size, "1M", NULL));
	input_imply_directory(&config);
	assert_int_equal(config.contexts.count, 0);
	set(OPTION_include, "*.c");
	input_imply_directory(&config);
	assert_int_equal(config.contexts.count, 1);
	assert_string_equal(config.contexts.items[0], ".");
	set(OPTION_contexts, "other");
	input_imply_directory(&config);
	assert_int_equal(config.contexts.count, 2);
}

static void test_what_is_there(void **state)
{
	(void)state;
	assert_true(input_seems_there(&config));
	set(OPTION_contexts, "name=/dev/null");
	set(OPTION_contexts, "-");
	set(OPTION_contexts, "name=-");
	assert_true(input_seems_there(&config));
	set(OPTION_contexts, "/nowhere/at/all");
	assert_false(input_seems_there(&config));
}

/* Standard input has one use. */
static void test_two_uses_of_standard_input(void **state)
{
	const struct input_time time = input_time_from(1000);
	struct rlmd_error err;

	(void)state;
	input.task_is_stdin = true;
	set(OPTION_contexts, "name=-");
	assert_false(input_context(&input, &config, time, &err));
	assert_non_null(strstr(err.text, "both the task and a context"));
	set(OPTION_files_from, "-");
	assert_false(input_context(&input, &config, time, &err));
	assert_non_null(strstr(err.text, "both --files-from and a context"));
}

static void test_tasks(void **state)
{
	const struct input_time time = input_time_from(1000);
	struct rlmd_error err;

	(void)state;
	assert_true(input_task(&input, &config, "a task", time, NULL));
	assert_string_equal(input.task, "a task");
	free(input.task);
	assert_false(input_task(&input, &config, " \n", time, &err));
	assert_string_equal(err.text, "the task is empty");
	free(input.task);
	set(OPTION_task_file, "/dev/null");
	assert_false(input_task(&input, &config, NULL, time, &err));
}

/* Says what is waited for, and when it is given up. */
static void test_an_idle_pipe(void **state)
{
	int before = dup(STDIN_FILENO), ends[2];
	struct rlmd_error err;
	size_t size;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	dup2(ends[0], STDIN_FILENO);
	assert_null(input_stdin("the plan", 100, input_time_from(20), &size, &err));
	assert_int_equal(err.kind, RLMD_ERROR_BUDGET);
	assert_non_null(strstr(err.text, "the plan on standard input did not end within 20ms"));
	assert_int_equal(write(ends[1], "12345", 5), 5);
	close(ends[1]);
	assert_null(input_stdin("the plan", 4, input_time_from(1000), &size, &err));
	assert_string_equal(err.text, "the plan is longer than 4 bytes");
	dup2(before, STDIN_FILENO);
	close(before);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_task, enter, leave),
		cmocka_unit_test_setup_teardown(test_an_implied_directory, enter, leave),
		cmocka_unit_test_setup_teardown(test_what_is_there, enter, leave),
		cmocka_unit_test_setup_teardown(test_two_uses_of_standard_input, enter, leave),
		cmocka_unit_test_setup_teardown(test_tasks, enter, leave),
		cmocka_unit_test_setup_teardown(test_an_idle_pipe, enter, leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
