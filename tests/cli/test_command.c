/* cli/command: which command is meant, and how each begins. */
#include "cli/command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/config.h"
#include "told.h"

static void test_names(void **state)
{
	(void)state;
	assert_int_equal(command_find("merge"), COMMAND_MERGE);
	assert_int_equal(command_find("Merge"), COMMAND_COUNT);
	assert_string_equal(command_nearest("exce"), "exec");
	assert_null(command_nearest("zzzzzzzz"));
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		assert_int_equal(command_find(command_table[i].name), i);
		assert_non_null(strstr(command_table[i].help, command_table[i].name));
	}
}

/* An error of the command line comes with a line of advice, others without. */
static void test_refusals(void **state)
{
	const struct rlmd_error usage = {.kind = RLMD_ERROR_USAGE, .text = "it is wrong"};
	const struct rlmd_error input = {.kind = RLMD_ERROR_INPUT, .text = "it is not there"};
	struct told told;

	(void)state;
	told_begin(&told);
	assert_int_equal(command_refuse(COMMAND_TRACE, &usage), 2);
	assert_int_equal(command_refuse(COMMAND_TRACE, &input), 8);
	assert_string_equal(
		told_end(&told),
		"rlmd: error: it is wrong\n"
		"usage: rlmd trace [OPTIONS] FILE; 'rlmd trace --help' lists the options\n"
		"rlmd: error: it is not there\n");
}

/* Returns what is printed on standard output. */
static const char *begin(struct told *told, char *option, bool *ret, int *ret_status)
{
	char *arguments[] = {(char *)"exec", option, (char *)"task", NULL};
	int before = dup(STDOUT_FILENO), first = 0;
	struct config config;

	told_begin(told);
	dup2(told->file, STDOUT_FILENO);
	*ret = command_begin(COMMAND_EXEC, &config, 3, arguments, &first, ret_status);
	dup2(before, STDOUT_FILENO);
	close(before);
	if (*ret)
		assert_int_equal(first, 2);
	config_done(&config);
	return told_end(told);
}

static void test_begin(void **state)
{
	struct told told;
	const char *text;
	int status = -1;
	bool goes_on;

	(void)state;
	assert_string_equal(begin(&told, (char *)"-q", &goes_on, &status), "");
	assert_true(goes_on);
	text = begin(&told, (char *)"--help", &goes_on, &status);
	assert_false(goes_on);
	assert_int_equal(status, 0);
	assert_non_null(strstr(text, "usage: rlmd exec"));
	assert_null(strstr(text, "--files-from FILE"));
	text = begin(&told, (char *)"--help-all", &goes_on, &status);
	assert_int_equal(status, 0);
	assert_non_null(strstr(text, "--files-from FILE"));
	text = begin(&told, (char *)"--none", &goes_on, &status);
	assert_false(goes_on);
	assert_int_equal(status, 2);
	assert_non_null(strstr(text, "there is no option --none"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
