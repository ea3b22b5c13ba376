/* engine/capacity: what a limit of this process leaves room for, and the words of a refusal. */
#include "engine/capacity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

/* With so many open files allowed. */
static bool check(rlim_t files, size_t workers, size_t calls, struct rlmd_error *err)
{
	struct rlimit before, limit;
	bool good;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = files;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	good = capacity_check(workers, calls, err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	return good;
}

/* Of 56 files 16 are the supervisor's own, a worker has four, a call has one. */
static void test_open_files(void **state)
{
	struct rlmd_error err = {0};

	(void)state;
	assert_true(check(56, 10, 40, &err));
	assert_false(check(56, 11, 1, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_string_equal(err.text, "11 workers at once (max-workers) are more than there can be "
				      "here: at most 10, for a process may have 56 open files "
				      "(ulimit -n)");
	assert_false(check(56, 1, 41, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_string_equal(err.text, "41 model calls at once (max-parallel) are more than there "
				      "can be here: at most 40, for a process may have 56 open "
				      "files (ulimit -n)");
}

/* With fewer files than the supervisor needs, there is room for none, and not for less. */
static void test_none(void **state)
{
	struct rlmd_error err = {0};

	(void)state;
	assert_true(check(12, 0, 0, &err));
	assert_false(check(12, 0, 1, &err));
	assert_non_null(strstr(err.text, "at most 0, for a process may have 12 open files"));
}

/* No machine has as many, whatever the limits of the process. */
static void test_beyond_any_machine(void **state)
{
	struct rlmd_error err = {0};

	(void)state;
	assert_false(capacity_check(SIZE_MAX, 1, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(err.text, "workers at once (max-workers) are more than there"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_files),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_beyond_any_machine),
	};

	return cmocka_run_group_tests_name("capacity", tests, NULL, NULL);
}
