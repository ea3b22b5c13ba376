/*
 * A process that runs out of descriptors, one earlier than the other: then there is no worker, for
 * a reason that is told, nothing is left behind, and all goes on when there are some again.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "sandbox/launch.h"
#include "stage.h"

static struct rlimit usual;

/* No descriptor from this one on can be opened. */
static void limit_descriptors(int first)
{
	struct rlimit limit = {(rlim_t)first, usual.rlim_max};

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int next_descriptor(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void no_descriptors_for_a_sandbox(void **state)
{
	struct stage *stage = *state;
	struct rlmd_error err;
	int first, failures = 0;

	sandbox_free(stage->sandbox);
	for (first = next_descriptor();; first++) {
		err = (struct rlmd_error){0};
		limit_descriptors(first);
		stage->sandbox = stage_sandbox(stage->base, NULL, &err);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
		if (stage->sandbox)
			break;
		assert_true(*err.text);
		if (err.kind != RLMD_ERROR_MACHINE && err.kind != RLMD_ERROR_SANDBOX &&
		    err.kind != RLMD_ERROR_USAGE)
			fail_msg("%s: %s", rlmd_error_name(err.kind), err.text);
		failures++;
	}
	assert_true(failures > 5);
}

static void no_descriptors_for_a_worker(void **state)
{
	struct stage *stage = *state;
	int file = memory_file("input"), failures = 0;
	struct cast cast;

	for (int first = next_descriptor();; first++) {
		limit_descriptors(first);
		begin(&cast, stage, &file, 1, 0);
		while (!cast.spawns)
			event_base_loop(stage->base, EVLOOP_ONCE);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
		if (cast.process)
			break;
		if (cast.error.kind != RLMD_ERROR_MACHINE && cast.error.kind != RLMD_ERROR_SANDBOX)
			fail_msg("%s: %s", rlmd_error_name(cast.error.kind), cast.error.text);
		end(&cast);
		failures++;
	}
	close(file);
	assert_true(failures > 3);
	tell(&cast, "say(os.read(inputs[0], 100))");
	expect_line(&cast, "here");
	expect_line(&cast, "b'input'");
	end(&cast);
}

static void expect_failure(struct stage *stage, const int *files, size_t count,
			   enum rlmd_error_kind kind, const char *in_text)
{
	struct cast cast;

	begin(&cast, stage, files, count, 0);
	while (!cast.spawns)
		event_base_loop(stage->base, EVLOOP_ONCE);
	assert_null(cast.process);
	assert_int_equal(cast.error.kind, kind);
	if (!strstr(cast.error.text, in_text))
		fail_msg("%s", cast.error.text);
}

/* Of inputs: more than fit a request, and one that is none. */
static void inputs_may_be_refused(void **state)
{
	int files[LAUNCH_FILES_MAX + 1] = {0}, none = -1;

	expect_failure(*state, files, LAUNCH_FILES_MAX + 1, RLMD_ERROR_INPUT, "97 inputs");
	expect_failure(*state, &none, 1, RLMD_ERROR_SANDBOX, strerror(EBADF));
	expect(*state, "say('alive')", "alive\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, stage_close)
	const struct CMUnitTest tests[] = {
		TEST(no_descriptors_for_a_sandbox),
		TEST(no_descriptors_for_a_worker),
		TEST(inputs_may_be_refused),
	};

	if (getrlimit(RLIMIT_NOFILE, &usual))
		return 1;
	stage_enter_mode(NULL);
	return cmocka_run_group_tests_name("spawn", tests, stage_make_directory,
					   stage_remove_directory);
}
