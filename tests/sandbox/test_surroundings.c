/*
 * Odd places to be started in: each works, or is refused by its name. A child of
 * the test goes there, for there is no way back from some of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sandbox/sandbox_private.h"
#include "stage.h"

/*
 * Whether it failed for what other processes of this user are sending each other: descriptors on
 * their way count against a limit that is low in here, unix(7). They arrive.
 */
static bool others_send(const struct rlmd_error *error)
{
	return strstr(error->text, strerror(ETOOMANYREFS)) && poll(NULL, 0, 10) == 0;
}

/* A worker with an input; it finds that, and nothing else. */
static void expect_worker(void)
{
	struct stage stage = {.base = event_base_new()};
	auto_free char *heard = NULL;
	struct rlmd_error err = {0};
	struct cast cast;
	int file;

	do
		stage.sandbox = stage_sandbox(stage.base, NULL, &err);
	while (!stage.sandbox && others_send(&err));
	if (!stage.sandbox)
		fail_msg("%s", err.text);
	file = memory_file("input");
	do {
		begin(&cast, &stage, &file, 1, 0);
		event_base_dispatch(stage.base);
	} while (!cast.process && others_send(&cast.error));
	if (!cast.process)
		fail_msg("%s", cast.error.text);
	tell(&cast, "say(native.decode(5, 5), attempt('os.write(5, b\"x\")'))\n"
		    "say([fd for fd in range(1024) if\n"
		    "    attempt('__import__(\"fcntl\").fcntl(%d, 1)' % fd) != 'OSError'])");
	heard = hear(&cast, false);
	if (strncmp(heard, "here\ninput ", 11) || !strstr(heard, "[0, 1, 2, 3, 4, 5]"))
		fail_msg("%s", heard);
	end(&cast);
	close(file);
	sandbox_free(stage.sandbox);
	event_base_free(stage.base);
}

/* `go` says why it cannot be, or NULL. True where the child went there and passed. */
static bool passes(const char *(*go)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		const char *problem;

		setenv("CMOCKA_TEST_ABORT", "1", 1); /* a failure ends this process alone */
		problem = go();
		if (problem)
			print_message("# %s\n", problem);
		else
			expect_worker();
		_exit(problem ? 2 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2);
	return WEXITSTATUS(status) == 0;
}

static const char *few_descriptors(void)
{
	return setrlimit(RLIMIT_NOFILE, &(struct rlimit){64, 64}) ? "setrlimit" : NULL;
}

static const char *none_of_the_first(void)
{
	/* What the tests print would go into whatever is opened next. */
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	return NULL;
}

static const char *a_thousand_inherited(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < 1200)
		return "the limit of descriptors is too low";
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < 1000; i++)
		if (open("/dev/null", O_RDWR) < 0) /* not close-on-exec, on purpose */
			return "they cannot be opened";
	return NULL;
}

/* A mount namespace in which to take something away. */
static const char *own_mounts(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return "only root can mount";
	return NULL;
}

static const char *no_proc(void)
{
	const char *problem = own_mounts();

	return problem ? problem : umount2("/proc", MNT_DETACH) ? "/proc stays" : NULL;
}

static const char *no_cgroups(void)
{
	const char *problem = own_mounts();

	return problem ? problem : umount2("/sys", MNT_DETACH) ? "/sys stays" : NULL;
}

static const char *nothing_writable(void)
{
	const char *problem = own_mounts();

	if (problem)
		return problem;
	return mount("/tmp", "/tmp", NULL, MS_BIND | MS_REC, NULL) ||
			       mount(NULL, "/tmp", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL)
		       ? "/tmp stays writable"
		       : NULL;
}

/* RLIMIT_NOFILE of 64, no standard descriptors, a thousand others. */
static void descriptors_do_not_matter(void **state)
{
	(void)state;
	assert_true(passes(few_descriptors));
	assert_true(passes(none_of_the_first));
	assert_true(passes(a_thousand_inherited));
}

/* No /proc, no /sys, nothing that could be written to. */
static void mounts_do_not_matter(void **state)
{
	static const char *(*const places[])(void) = {no_proc, no_cgroups, nothing_writable};

	(void)state;
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
		assert_true(passes(places[i]));
}

/* A limit that leaves no room is named. */
static void want_of_descriptors_is_named(void **state)
{
	struct event_base *base = event_base_new();
	struct rlimit before;
	struct rlmd_error err = {0};

	(void)state;
	getrlimit(RLIMIT_NOFILE, &before);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){8, before.rlim_max});
	assert_null(stage_sandbox(base, NULL, &err));
	setrlimit(RLIMIT_NOFILE, &before);
	assert_non_null(strstr(err.text, "Too many open files"));
	event_base_free(base);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptors_do_not_matter),
		cmocka_unit_test(want_of_descriptors_is_named),
	};
	const struct CMUnitTest for_root[] = {
		/* nobody else can mount */
		cmocka_unit_test(descriptors_do_not_matter),
		cmocka_unit_test(mounts_do_not_matter),
		cmocka_unit_test(want_of_descriptors_is_named),
	};

	stage_enter_mode(argc > 1 ? argv[1] : NULL);
	if (stage_mode->who == AS_ROOT)
		return cmocka_run_group_tests_name("surroundings", for_root, stage_make_directory,
						   stage_remove_directory);
	return cmocka_run_group_tests_name("surroundings", tests, stage_make_directory,
					   stage_remove_directory);
}
