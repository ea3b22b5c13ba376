/* batch/concurrency: what the kernel says that is left, and jobs at once. */
#include "batch/concurrency.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"

static char directory[] = "/tmp/test_concurrency.XXXXXX";

static void write_file(const char *name, const char *text)
{
	auto_free char *path = xasprintf("%s/%s", directory, name);
	FILE *file;

	for (char *at = path + sizeof directory; (at = strchr(at, '/')); *at++ = '/') {
		*at = '\0';
		mkdir(path, 0700);
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int64_t left(void)
{
	auto_free char *proc = xasprintf("%s/proc", directory);
	auto_free char *cgroups = xasprintf("%s/cgroup", directory);
	const struct concurrency_roots roots = {proc, cgroups};

	return concurrency_bytes(&roots);
}

static void test_least_of_all(void **state)
{
	(void)state;
	assert_true(left() == INT64_MAX);
	write_file("proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:   5000 kB\n");
	assert_int_equal(left(), 5000 << 10);

	/* Version 2: our own has no limit, and the one above it has. */
	write_file("proc/self/cgroup", "4:memory:/v1\n0::/a/b\n");
	write_file("cgroup/a/b/memory.max", "max\n");
	write_file("cgroup/a/memory.max", "3000000\n");
	write_file("cgroup/a/memory.current", "2500000\n");
	write_file("cgroup/a/memory.stat", "anon 1\ninactive_file 400000\n");
	assert_int_equal(left(), 900000);
	write_file("cgroup/a/memory.current", "9000000\n");
	assert_int_equal(left(), 0);
	write_file("cgroup/a/memory.max", "max\n");

	/* Version 1 says "none" by a large number. */
	write_file("cgroup/memory/v1/memory.limit_in_bytes", "700000\n");
	write_file("cgroup/memory/v1/memory.usage_in_bytes", "600000\n");
	write_file("cgroup/memory/v1/memory.stat", "inactive_file 9\ntotal_inactive_file 1000\n");
	assert_int_equal(left(), 101000);
	write_file("cgroup/memory/v1/memory.limit_in_bytes", "9223372036854771712\n");
	assert_int_equal(left(), 5000 << 10);
}

/* Jobs begun since the last look are counted, as they are not seen yet. */
static void test_admit(void **state)
{
	auto_free char *proc = xasprintf("%s/admit", directory);
	const struct concurrency_roots roots = {proc, "/nowhere"};
	struct concurrency concurrency = {.roots = &roots, .reserve = 100 << 20};

	(void)state;
	write_file("admit/meminfo", "MemAvailable: 170000 kB\n");
	for (int i = 0; i < 3; i++) {
		assert_true(concurrency_admits(&concurrency, 1000 + i));
		concurrency_begin(&concurrency);
	}
	assert_false(concurrency_admits(&concurrency, 1003));
	write_file("admit/meminfo", "MemAvailable: 102400 kB\n");
	assert_true(concurrency_admits(&concurrency, 1100));
	concurrency_begin(&concurrency);
	assert_false(concurrency_admits(&concurrency, 1101));
	concurrency.reserve = 0;
	assert_true(concurrency_admits(&concurrency, 1300));
}

/* The real one says something, whatever the machine is. */
static void test_here(void **state)
{
	(void)state;
	assert_in_range(concurrency_bytes(&concurrency_here), 0, INT64_C(1) << 50);
}

static int on_name(const char *name, const struct stat *status, int kind, struct FTW *walk)
{
	(void)status;
	(void)kind;
	(void)walk;
	return remove(name);
}

/* Descriptors are known before; what else the machine lacks, as it is seen. */
static void test_jobs_at_once(void **state)
{
	const struct rlmd_error err = {.kind = RLMD_ERROR_MACHINE, .text = "no pipes"};
	struct concurrency concurrency;
	struct rlimit before, few;
	char *text;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &before);
	few = (struct rlimit){80, before.rlim_max};
	setrlimit(RLIMIT_NOFILE, &few);
	assert_null(concurrency_open(&concurrency, 0, 8));
	assert_int_equal(concurrency.limit, 8);
	text = concurrency_open(&concurrency, 0, 9);
	assert_string_equal(text, "-j 9 is more than there can be here: 8 at once, for a process "
				  "may have 80 open files (ulimit -n)");
	free(text);
	few.rlim_cur = 16;
	setrlimit(RLIMIT_NOFILE, &few);
	free(concurrency_open(&concurrency, 0, 9));
	assert_int_equal(concurrency.limit, 1);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_null(concurrency_open(&concurrency, 0, 4));
	text = concurrency_lower(&concurrency, 4, &err);
	assert_non_null(strstr(text, "has too little: no pipes"));
	free(text);
	assert_int_equal(concurrency.limit, 3);
	assert_null(concurrency_lower(&concurrency, 1, &err));
	assert_int_equal(concurrency.limit, 1);
	for (int limit = 1; limit < 4; limit++)
		for (int ended = 0; ended < limit; ended++) {
			assert_int_equal(concurrency.limit, limit);
			concurrency_raise(&concurrency);
		}
	assert_int_equal(concurrency.limit, 4);
	for (int ended = 0; ended < 9; ended++)
		concurrency_raise(&concurrency);
	assert_int_equal(concurrency.limit, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_least_of_all),
		cmocka_unit_test(test_admit),
		cmocka_unit_test(test_here),
		cmocka_unit_test(test_jobs_at_once),
	};
	int failed;

	if (!mkdtemp(directory))
		return 1;
	failed = cmocka_run_group_tests_name("concurrency", tests, NULL, NULL);
	nftw(directory, on_name, 8, FTW_DEPTH | FTW_PHYS);
	return failed;
}
