/*
 * Odd places to be started in: each works, or is refused by its name. A child of
 * the test goes there, for there is no way back from some of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sandbox/sandbox_private.h"
#include "stage.h"

/* A worker with an input; it finds that, and nothing else. */
static void expect_worker(void)
{
	struct stage stage = {.base = event_base_new()};
	auto_free char *heard = NULL;
	struct rlmd_error err = {0};
	struct cast cast;
	int file;

	stage.sandbox = stage_sandbox(stage.base, NULL, &err);
	if (!stage.sandbox)
		fail_msg("%s", err.text);
	file = memory_file("input");
	begin(&cast, &stage, &file, 1, 0);
	event_base_dispatch(stage.base);
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
	/* The tests' output would go into whatever is opened next. */
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

enum { MESSAGE_DESCRIPTORS = 250 }; /* the kernel takes 253 */

/* As many as are in flight of this user's at most, and so many more that it stays so when others'
 * descriptors arrive meanwhile: see unix(7). False: others had as many, and it sent none. */
static bool send_descriptors(int socket)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(MESSAGE_DESCRIPTORS * sizeof(int))] = {0};
	struct iovec byte = {(char[]){'!'}, 1};
	struct msghdr message = {
		.msg_iov = &byte,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof space,
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	bool sent = false;

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(MESSAGE_DESCRIPTORS * sizeof(int));
	for (int i = 0; i < MESSAGE_DESCRIPTORS; i++)
		memcpy(CMSG_DATA(header) + i * sizeof socket, &socket, sizeof socket);
	while (sendmsg(socket, &message, MSG_DONTWAIT) == 1)
		sent = true;
	return sent;
}

/* Without taking them: they are let go. */
static void receive_descriptors(int socket)
{
	char byte;

	while (read(socket, &byte, 1) == 1)
		;
}

/* They are in flight most of the time, while ours are to be. */
static void keep_sending(const int *ends)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		send_descriptors(ends[0]);
		poll(NULL, 0, 20);
		receive_descriptors(ends[1]);
		poll(NULL, 0, 1);
	}
}

/*
 * Another process of this user has as many descriptors in flight as may be, most of the time: the
 * supervisor, the template and the worker each have to wait for theirs.
 */
static const char *others_send(void)
{
	const char *problem = few_descriptors();
	int ends[2];

	if (problem || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends))
		return problem ? problem : "no sockets";
	if (!fork())
		keep_sending(ends);
	close(ends[0]);
	close(ends[1]);
	for (int i = 0; i < 4; i++)
		expect_worker();
	return NULL;
}

/* For longer than anybody waits: who asked is told what to do, and asks again later. */
static const char *others_keep_sending(void)
{
	struct stage stage = {.base = event_base_new()};
	struct rlmd_error err = {0};
	struct cast cast;
	int ends[2];

	if (few_descriptors() || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
		return "no sockets";
	stage.sandbox = stage_sandbox(stage.base, NULL, &err);
	if (!stage.sandbox)
		fail_msg("%s", err.text);
	stage.sandbox->answer_ms = 50;
	while (!send_descriptors(ends[0])) /* what others have may arrive at any moment */
		poll(NULL, 0, 1);
	begin(&cast, &stage, NULL, 0, 0);
	event_base_dispatch(stage.base);
	assert_null(cast.process);
	if (!strstr(cast.error.text, "ulimit -n"))
		fail_msg("%s", cast.error.text);
	receive_descriptors(ends[1]);
	stage.sandbox->answer_ms = SOON;
	enter(&cast, &stage);
	end(&cast);
	sandbox_free(stage.sandbox);
	event_base_free(stage.base);
	close(ends[0]);
	close(ends[1]);
	return NULL;
}

/* RLIMIT_NOFILE of 64, no standard descriptors, a thousand others. */
static void descriptors_do_not_matter(void **state)
{
	(void)state;
	assert_true(passes(few_descriptors));
	assert_true(passes(none_of_the_first));
	assert_true(passes(a_thousand_inherited));
}

static void descriptors_in_flight_are_waited_for(void **state)
{
	(void)state;
	if (stage_mode->who == AS_NOBODY) /* the kernel does not count root's, nor a container's */
		assert_true(passes(others_keep_sending));
	assert_true(passes(others_send));
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
		cmocka_unit_test(descriptors_in_flight_are_waited_for),
		cmocka_unit_test(want_of_descriptors_is_named),
	};
	const struct CMUnitTest for_root[] = {
		/* nobody else can mount */
		cmocka_unit_test(descriptors_do_not_matter),
		cmocka_unit_test(descriptors_in_flight_are_waited_for),
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
