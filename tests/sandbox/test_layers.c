/*
 * The layers around the filter, each seen from where it must hold: from inside a
 * worker, from its files in /proc, from beside it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <pthread.h>
#include <rlmd/sandbox.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "sandbox/procfs.h"
#include "sandbox/sandbox_private.h"
#include "stage.h"

/* A worker that waits, and tells nothing. */
static void enter_idle(struct cast *cast, struct stage *stage)
{
	enter(cast, stage);
	expect_line(cast, "here");
}

/* A file of /proc/PID as we see it; new, empty where it cannot be read. */
static char *process_file(pid_t pid, const char *name)
{
	auto_free char *path = xasprintf("/proc/%d/%s", pid, name);
	auto_file FILE *file = fopen(path, "re");
	char *content = xcalloc(1, 1 << 16);

	if (file)
		(void)!fread(content, 1, (1 << 16) - 1, file);
	return content;
}

/* "Name:\tvalue" of /proc/PID/status; new. */
static char *status_of(pid_t pid, const char *field)
{
	auto_free char *status = process_file(pid, "status");
	auto_free char *start = xasprintf("\n%s:", field);
	const char *place = strstr(status, start);

	if (!place)
		fail_msg("no %s in the status of %d", field, pid);
	place += strlen(start);
	place += strspn(place, "\t ");
	return xstrndup(place, strcspn(place, "\n"));
}

static void expect_status(pid_t pid, const char *field, const char *expected)
{
	auto_free char *value = status_of(pid, field);

	if (strcmp(value, expected))
		fail_msg("%s is %s, not %s", field, value, expected);
}

/* G7: no capability in any set, none to come back to, whoever started it. */
static void no_capability_is_left(void **state)
{
	struct cast cast;

	enter_idle(&cast, *state);
	expect_status(process_pid(cast.process), "CapInh", "0000000000000000");
	expect_status(process_pid(cast.process), "CapPrm", "0000000000000000");
	expect_status(process_pid(cast.process), "CapEff", "0000000000000000");
	expect_status(process_pid(cast.process), "CapAmb", "0000000000000000");
	expect_status(process_pid(cast.process), "NoNewPrivs", "1");
	expect_status(process_pid(cast.process), "Seccomp", "2");
	/* The user nobody may not empty the bounding set; what is in it cannot be had without an
	 * exec. */
	if (stage_mode->who != AS_NOBODY || stage_has(*state, "user_namespace"))
		expect_status(process_pid(cast.process), "CapBnd", "0000000000000000");
	end(&cast);
}

/* A uid of its own: not ours, not its siblings', no groups; and free again after its end. */
static void uids_are_ones_own(void **state)
{
	struct stage *stage = *state;
	auto_free char *first_uid = NULL, *second_uid = NULL, *groups = NULL;
	struct cast first, second;
	size_t free_before;

	if (!stage_has(stage, "own_uid")) {
		assert_string_not_equal(stage_mode->mode, "root");
		assert_string_not_equal(stage_mode->mode, "uid");
		return;
	}
	enter_idle(&first, stage);
	free_before = stage->sandbox->processes.uids.free_count;
	enter_idle(&second, stage);
	first_uid = status_of(process_pid(first.process), "Uid");
	second_uid = status_of(process_pid(second.process), "Uid");
	groups = status_of(process_pid(second.process), "Groups");
	assert_string_not_equal(first_uid, second_uid);
	assert_true(atoi(first_uid) >= UIDS_FIRST && atoi(second_uid) >= UIDS_FIRST);
	assert_string_equal(groups, "");
	expect_status(process_pid(first.process), "Gid", first_uid);

	assert_int_equal(stage->sandbox->processes.uids.free_count, free_before - 1);
	process_kill(second.process);
	await_death(process_pid(second.process));
	assert_int_equal(stage->sandbox->processes.uids.free_count, free_before - 1);
	await_exit(&second);
	end(&second);
	assert_int_equal(stage->sandbox->processes.uids.free_count, free_before);
	end(&first);
}

/* Whether a worker and we are in the same namespace; those of an undumpable one are root's to see.
 */
static bool shares_namespace(pid_t pid, const char *name)
{
	auto_free char *theirs = xasprintf("/proc/%d/ns/%s", pid, name);
	auto_free char *ours = xasprintf("/proc/self/ns/%s", name);
	char seen[2][64] = {"", ""};

	assert_true(readlink(theirs, seen[0], sizeof seen[0] - 1) > 0);
	assert_true(readlink(ours, seen[1], sizeof seen[1] - 1) > 0);
	return !strcmp(seen[0], seen[1]);
}

/* Every namespace that the report names is another one than ours. */
static void namespaces_are_others(void **state)
{
	static const char *const names[][2] = {
		{"user_namespace", "user"},     {"empty_root", "mnt"},    {"pid_namespace", "pid"},
		{"net_namespace", "net"},       {"ipc_namespace", "ipc"}, {"uts_namespace", "uts"},
		{"cgroup_namespace", "cgroup"},
	};
	struct cast cast;
	size_t i;

	enter_idle(&cast, *state);
	for (i = 0; i < sizeof names / sizeof names[0]; i++) {
		auto_free char *path = xasprintf("/proc/%d/ns/mnt", process_pid(cast.process));
		char seen[64];

		if (readlink(path, seen, sizeof seen) < 0)
			break; /* undumpable, and we are not root */
		if (shares_namespace(process_pid(cast.process), names[i][1]) ==
		    stage_has(*state, names[i][0]))
			fail_msg("%s", names[i][0]);
	}
	if (!geteuid() && !stage_mode->without)
		assert_int_equal(i, 7);
	end(&cast);
}

/* It is alone: process 1, without a parent. */
static void it_is_process_one(void **state)
{
	expect(*state, "say(os.getpid() == 1, os.getppid() == 0)",
	       stage_has(*state, "pid_namespace") ? "True True\n" : "False False\n");
}

/* One mount, read-only, with nothing in it; ours are what they were. */
static void the_root_is_empty(void **state)
{
	auto_free char *ours = process_file(getpid(), "mountinfo");
	auto_free char *theirs = NULL, *after = NULL;
	struct cast cast;

	enter_idle(&cast, *state);
	theirs = process_file(process_pid(cast.process), "mountinfo");
	after = process_file(getpid(), "mountinfo");
	if (stage_has_own_mounts)
		assert_string_equal(ours, after);
	if (stage_has(*state, "empty_root") && *theirs) {
		assert_ptr_equal(strchr(theirs, '\n'), theirs + strlen(theirs) - 1);
		assert_non_null(strstr(theirs, " / / ro,nosuid,nodev,noexec"));
		assert_non_null(strstr(theirs, " - tmpfs none ro,"));
	}
	if (!geteuid() && !strcmp(stage_mode->mode, "root"))
		assert_true(*theirs);
	end(&cast);
}

/* No interface is up: the loopback is the only one, and it is down. */
static void no_interface_is_up(void **state)
{
	auto_free char *routes = NULL, *devices = NULL;
	struct cast cast;

	enter_idle(&cast, *state);
	if (stage_has(*state, "net_namespace")) {
		devices = process_file(process_pid(cast.process), "net/dev");
		routes = process_file(process_pid(cast.process), "net/fib_trie");
		assert_null(strstr(devices, "eth"));
		assert_null(strstr(routes, "127.0.0.1"));
	}
	end(&cast);
}

/* Others go first. */
static void it_is_nice(void **state)
{
	auto_free char *stat = NULL;
	struct cast cast;
	long nice = 0, policy = 0;

	enter_idle(&cast, *state);
	stat = process_file(process_pid(cast.process), "stat");
	assert_int_equal(sscanf(strrchr(stat, ')'),
				") %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
				" %ld %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
				" %*s %*s %*s %*s %*s %*s %ld",
				&nice, &policy),
			 2);
	assert_int_equal(nice, 10);
	assert_int_equal(policy, 3); /* SCHED_BATCH */
	end(&cast);
}

/* Waits for what it does not survive. */
static void await_verdict(struct cast *cast, const char *expected)
{
	await_exit(cast);
	assert_true(cast->exit.signaled);
	assert_int_equal(cast->exit.status, SIGKILL);
	if (strncmp(cast->exit.reason, expected, strlen(expected)))
		fail_msg("killed for: %s", cast->exit.reason);
}

/*
 * G8: threads are counted where a worker has a uid: Python says so, and goes on. Elsewhere the
 * supervisor counts them, and kills. The kernel counts a uid's threads on the whole machine: a
 * supervisor whose locks are in another /run may have given the same uid to one of its workers.
 */
static void threads_are_limited(void **state)
{
	static const char code[] =
		"import threading, time\n"
		"threading.stack_size(64 << 10)\n"
		"wait, count = threading.Event(), 0\n"
		"try:\n"
		"    while count < 600:\n"
		"        threading.Thread(target=wait.wait, daemon=True).start()\n"
		"        count += 1\n"
		"except RuntimeError as error:\n"
		"    say(error, 200 < count < 256)\n"
		"time.sleep(0 if count < 600 else 1000)\n";
	struct cast cast;

	if (stage_has(*state, "own_uid")) {
		expect(*state, code, "can't start new thread True\n");
		return;
	}
	enter_idle(&cast, *state);
	tell(&cast, code);
	await_verdict(&cast, "it had more than 256 threads");
	end(&cast);
}

/* The heap that malloc reserves for each thread would use up the address space of a worker. */
static void threads_reserve_no_heaps(void **state)
{
	static const char code[] =
		"import mmap, threading\n"
		"threading.stack_size(64 << 10)\n"
		"wait = threading.Event()\n"
		"for _ in range(200):\n"
		"    threading.Thread(target=wait.wait, daemon=True).start()\n"
		"private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS\n"
		"mmap.mmap(-1, 1 << 30, flags=private, prot=mmap.PROT_READ).close()\n"
		"say('there is room')\n";

	expect(*state, code, "there is room\n");
}

/* G8: the kernel tells the memory of a process by its first thread; without it, it is killed. */
static void nobody_hides_behind_a_dead_thread(void **state)
{
	struct cast cast;

	enter_idle(&cast, *state);
	tell(&cast, "import ctypes, threading, time\n"
		    "threading.Thread(target=time.sleep, args=(1000,)).start()\n"
		    "ctypes.CDLL(None).syscall(60 if os.uname().machine == 'x86_64' else 93, 0)");
	await_verdict(&cast, "its main thread had ended");
	end(&cast);
}

static void *sleep_on(void *arg)
{
	sleep(SOON);
	return arg;
}

/* A process of two threads whose first ends. */
static pid_t fork_headless(void)
{
	pid_t child = fork();
	pthread_t thread;

	if (child)
		return child;
	if (!pthread_create(&thread, NULL, sleep_on, NULL))
		pthread_exit(NULL);
	_exit(1);
}

/* The same, killed: it has no memory either, for as long as it takes to be freed, and hides not. */
static void the_dead_do_not_hide(void **state)
{
	pid_t child = fork_headless();

	(void)state;
	for (;;) {
		auto_free char *stat = process_file(child, "stat");

		if (strstr(stat, ") Z "))
			break;
		poll(NULL, 0, 1);
	}
	assert_true(procfs_threads_go_on(child, 2));
	kill(child, SIGKILL);
	await_death(child);
	assert_false(procfs_threads_go_on(child, 2));
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Numbers of a process that we killed already are no reason for its end. */
static void the_first_verdict_stays(void **state)
{
	struct cast cast;

	enter_idle(&cast, *state);
	process_condemn(cast.process, "the %s reason", "first");
	process_condemn(cast.process, "the %s reason", "second");
	await_verdict(&cast, "the first reason");
	end(&cast);
}

/* Memory that RLIMIT_DATA has lost sight of: written first, then made read-only. */
#define HIDE                                                                                       \
	"import ctypes\n"                                                                          \
	"c = ctypes.CDLL(None)\n"                                                                  \
	"c.mmap.restype = ctypes.c_void_p\n"                                                       \
	"c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + "             \
	"[ctypes.c_long]\n"                                                                        \
	"c.mprotect.argtypes = c.memset.argtypes = [ctypes.c_void_p, ctypes.c_size_t, "            \
	"ctypes.c_int]\n"                                                                          \
	"c.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]\n"                   \
	"def hide(size):\n"                                                                        \
	"    place = c.mmap(None, size, 3, 0x22, -1, 0)\n"                                         \
	"    c.memset(place, 1, size)\n"                                                           \
	"    return c.mprotect(place, size, 1)\n"

/* G8: who uses more than its own memory past the rlimits is killed and told why; others live. */
static void hidden_memory_is_found(void **state)
{
	struct cast hog, sibling;

	enter_idle(&sibling, *state);
	enter_idle(&hog, *state);
	tell(&hog, HIDE "for _ in range(3): hide(150 << 20)\n"
			"say('hidden')\n"
			"import time\n"
			"time.sleep(1000)");
	expect_line(&hog, "hidden");
	await_verdict(&hog, "it used more than its memory of 256 MiB");
	end(&hog);
	tell(&sibling, "say('alive')");
	expect_line(&sibling, "alive");
	end(&sibling);
}

static const char fill[] = "block = bytearray(150 << 20)\n"
			   "say('full')\n"
			   "import time\n"
			   "time.sleep(1000)";

/* G8: all together have a limit too, without a cgroup: the largest goes, with a reason. */
static void the_pool_has_a_ceiling(void **state)
{
	struct cast small, hog;

	stage_reopen(*state, "memory_group", (size_t)100 << 20);
	assert_false(stage_has(*state, "memory_cgroup"));
	assert_string_not_equal(rlmd_sandbox_level(((struct stage *)*state)->sandbox), "L4");
	enter_idle(&small, *state);
	enter_idle(&hog, *state);
	tell(&hog, fill);
	expect_line(&hog, "full");
	await_verdict(&hog, "all workers together used more than their memory of 100 MiB");
	end(&hog);
	tell(&small, "say('alive')");
	expect_line(&small, "alive");
	end(&small);
}

/* The same by the kernel, where there are cgroups; it is quicker than any look. */
static void the_cgroup_bites(void **state)
{
	struct stage *stage = *state;
	struct cast small, hog;

	stage_reopen(stage, NULL, (size_t)100 << 20);
	watch_done(&stage->sandbox->watch);
	stage->sandbox->watch.timer = NULL;
	if (!stage_has(*state, "memory_cgroup")) {
		assert_true(geteuid());
		return;
	}
	enter_idle(&small, *state);
	enter_idle(&hog, *state);
	tell(&hog, fill);
	await_verdict(&hog, "all workers together used more than their memory of 100 MiB");
	assert_int_equal(cgroup_kills(((struct stage *)*state)->sandbox->config.cgroup), 1);
	end(&hog);
	tell(&small, "say('alive')");
	expect_line(&small, "alive");
	end(&small);
}

/* G8: who used up its processor time is killed by the kernel, and the reason is told. */
static void processor_time_is_limited(void **state)
{
	struct stage *stage = *state;
	struct cast cast;

	/* The kernel counts ticks, and we what was run: the more there are, the less they differ.
	 */
	stage->sandbox->processes.cpu_seconds = 3;
	enter(&cast, stage);
	tell(&cast, "while True: pass");
	await_verdict(&cast, "it used more than its processor time of 3.0s");
	end(&cast);
}

/* A supervisor's cgroups, whatever controllers there are. */
static size_t count_cgroups(pid_t supervisor)
{
	static const char *const patterns[] = {
		"/sys/fs/cgroup/rlmd-*",
		"/sys/fs/cgroup/*/rlmd-*",
		"/sys/fs/cgroup/*/*/rlmd-*",
		"/sys/fs/cgroup/*/*/*/rlmd-*",
	};
	auto_free char *mine = xasprintf("/rlmd-%d-", supervisor);
	size_t count = 0, i, j;

	for (i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
		glob_t found = {0};

		glob(patterns[i], 0, NULL, &found);
		for (j = 0; j < found.gl_pathc; j++)
			count += strstr(found.gl_pathv[j], mine) ? 1 : 0;
		globfree(&found);
	}
	return count;
}

/* G9: a normal end leaves no cgroup. */
static void no_cgroup_is_left(void **state)
{
	struct stage *stage = *state;
	struct cast cast;

	enter_idle(&cast, stage);
	assert_true(count_cgroups(getpid()) > 0 || !stage_has(stage, "memory_cgroup"));
	end(&cast);
	sandbox_free(take_pointer(&stage->sandbox));
	assert_int_equal(count_cgroups(getpid()), 0);
}

/* G9: what a killed supervisor leaves is gone with the next one that starts. */
static void killed_supervisors_are_swept(void **state)
{
	struct stage *stage = *state;
	struct pollfd over[2];
	pid_t helper, worker;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	helper = fork();
	if (!helper) {
		struct stage own = {.base = event_base_new()};
		struct cast cast;

		own.sandbox = stage_sandbox(own.base, NULL, NULL);
		enter(&cast, &own);
		worker = process_pid(cast.process);
		(void)!write(ends[1], &worker, sizeof worker);
		pause();
		_exit(1);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &worker, sizeof worker), sizeof worker);
	close(ends[0]);
	assert_true(count_cgroups(helper) > 0 || !stage_has(stage, "memory_cgroup"));
	over[0] = (struct pollfd){.fd = pidfd_open(worker, 0), .events = POLLIN};
	over[1] = (struct pollfd){.fd = pidfd_open(getsid(worker), 0), .events = POLLIN};
	kill(helper, SIGKILL);
	assert_int_equal(waitpid(helper, NULL, 0), helper);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(poll(&over[i], 1, SOON), 1);
		close(over[i].fd);
	}
	stage_reopen(stage, NULL, 0);
	assert_int_equal(count_cgroups(helper), 0);
}

/* A template that takes another's place is in the same cgroup, and so are its workers. */
static void new_templates_join(void **state)
{
	auto_free char *before = NULL, *after = NULL;
	struct cast first, second;

	enter_idle(&first, *state);
	before = process_file(process_pid(first.process), "cgroup");
	kill(getsid(process_pid(first.process)), SIGKILL);
	await_death(getsid(process_pid(first.process)));
	event_base_loop(first.stage->base, EVLOOP_NONBLOCK);
	enter_idle(&second, *state);
	after = process_file(process_pid(second.process), "cgroup");
	assert_true(*before);
	assert_string_equal(before, after);
	end(&first);
	end(&second);
}

/* A new template in a lesser state than the one before is none. */
static void new_templates_are_as_good(void **state)
{
	static const char *const steps[] = {"keyring", "landlock", "namespaces", "user_namespace"};
	struct stage *stage = *state;
	uint64_t step;
	size_t i, refused = 0;

	for (i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		struct cast first, second;

		stage_reopen(stage, NULL, 0);
		enter_idle(&first, stage);
		assert_true(layer_status_steps(steps[i], &step, NULL));
		stage->sandbox->config.terms.without |= step;
		kill(getsid(process_pid(first.process)), SIGKILL);
		await_death(getsid(process_pid(first.process)));
		event_base_loop(stage->base, EVLOOP_NONBLOCK);
		begin(&second, stage, NULL, 0, 0);
		event_base_dispatch(stage->base);
		if (!second.process) {
			assert_int_equal(second.error.kind, RLMD_ERROR_SANDBOX);
			refused++;
		}
		end(&second);
		end(&first);
	}
	/* Where the mode has no namespaces, nor Landlock, the keyring alone is missed. */
	assert_true(refused >= (strcmp(stage_mode->name, "sealed") ? 2 : 1));
}

/* A worker that cannot prove what it was asked for ends, and says which wall it was. */
static void lesser_workers_end(void **state)
{
	struct stage *stage = *state;
	struct cast cast;
	uint32_t layer = BIT(uid) & ~stage->sandbox->status.layers;

	stage->sandbox->status.layers |= layer ? layer : BIT(user);
	enter(&cast, stage);
	await_exit(&cast);
	assert_false(cast.exit.signaled);
	assert_string_equal(process_exit_wall(&cast.exit),
			    layer ? "a uid of its own" : "what must be refused was refused");
	end(&cast);
}

/* Root's uid is nobody's layer: where it is all there is, the report says so, and L3 is not
 * reached. */
static void root_is_no_stranger(void **state)
{
	struct stage *stage = *state;

	stage_reopen(stage, "outer_uid,uid", 0);
	if (!geteuid() && strcmp(stage_mode->mode, "root")) {
		assert_false(stage_has(stage, "not_root"));
		assert_true(strcmp(rlmd_sandbox_level(stage->sandbox), "L3") < 0);
	} else if (geteuid()) {
		assert_true(stage_has(stage, "not_root"));
	}
	stage_reopen(stage, NULL, 0);
	assert_true(stage_has(stage, "not_root"));
}

static void layers_have_meanings(void **state)
{
	(void)state;
	assert_string_equal(rlmd_sandbox_meaning("seccomp"), "the sealed filter");
	assert_null(rlmd_sandbox_meaning("filter")); /* that is our own name of it */
	assert_null(rlmd_sandbox_meaning(NULL));
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, stage_close)
	const struct CMUnitTest tests[] = {
		TEST(no_capability_is_left),
		TEST(uids_are_ones_own),
		TEST(namespaces_are_others),
		TEST(it_is_process_one),
		TEST(the_root_is_empty),
		TEST(no_interface_is_up),
		TEST(it_is_nice),
		TEST(threads_are_limited),
		TEST(threads_reserve_no_heaps),
		TEST(nobody_hides_behind_a_dead_thread),
		cmocka_unit_test(the_dead_do_not_hide),
		cmocka_unit_test(layers_have_meanings),
		TEST(the_first_verdict_stays),
		TEST(hidden_memory_is_found),
		TEST(the_pool_has_a_ceiling),
		TEST(the_cgroup_bites),
		TEST(processor_time_is_limited),
		TEST(no_cgroup_is_left),
		TEST(killed_supervisors_are_swept),
		TEST(new_templates_join),
		TEST(new_templates_are_as_good),
		TEST(lesser_workers_end),
		TEST(root_is_no_stranger),
	};

	stage_enter_mode(argc > 1 ? argv[1] : NULL);
	return cmocka_run_group_tests_name("layers", tests, stage_make_directory,
					   stage_remove_directory);
}
