/*
 * Cgroups of supervisors beside each other: what one that lives has is left alone, what a dead one
 * has left is swept, whatever pid namespaces they are in. And where they are, and what is above.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "sandbox/cgroup.h"

static const struct cgroup_limits limits = {.memory = (uint64_t)1 << 30, .threads = 1000};
static char *place; /* of the pids controller, of all the likeliest to be there */

static char *read_whole(const char *path)
{
	auto_file FILE *file = fopen(path, "re");
	char *content = xcalloc(1, 1 << 20);

	if (file)
		(void)!fread(content, 1, (1 << 20) - 1, file);
	return content;
}

static struct cgroup *make(void)
{
	struct steps steps = {0};

	return cgroup_new(&limits, &steps);
}

/* The directory of this process, new, or NULL; the last that was made where it has more. In another
 * pid namespace others may have its pid. */
static char *own_directory(void)
{
	auto_free char *prefix = NULL;
	DIR *directory = opendir(place);
	struct dirent *entry;
	struct stat namespace;
	char *found = NULL;

	assert_int_equal(stat("/proc/self/ns/pid", &namespace), 0);
	prefix = xasprintf("rlmd-%d-ns%llu-", getpid(), (unsigned long long)namespace.st_ino);
	while ((entry = readdir(directory)))
		if (!strncmp(entry->d_name, prefix, strlen(prefix))) {
			free(found);
			found = xasprintf("%s/%s", place, entry->d_name);
		}
	closedir(directory);
	return found;
}

static bool is_there(const char *directory)
{
	struct stat st;

	return !stat(directory, &st);
}

/* In a pid namespace and with a /proc of its own, as in a container beside ours. */
static void elsewhere(void (*act)(int), int to)
{
	pid_t outer = fork(), inner;
	int status;

	if (!outer) {
		if (unshare(CLONE_NEWPID | CLONE_NEWNS) ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
			_exit(1);
		inner = fork();
		if (!inner) {
			if (mount("proc", "/proc", "proc", 0, NULL))
				_exit(1);
			act(to);
			_exit(0);
		}
		waitpid(inner, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	assert_int_equal(waitpid(outer, &status, 0), outer);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
}

static void come_and_go(int to)
{
	(void)to;
	cgroup_free(make());
}

static void come_and_die(int to)
{
	auto_free char *made = NULL;

	make();
	made = own_directory();
	if (!is_there(made)) /* asked by the living: others may sweep what the dead left */
		_exit(1);
	(void)!write(to, made, strlen(made) + 1);
}

static pid_t start_idle(void)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also where a test fails */
		pause();
		_exit(0);
	}
	return child;
}

static void end_idle(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* It is empty until its template starts, and again when that has died. */
static void the_living_keep_theirs(void **state)
{
	struct cgroup *cgroup = make();
	auto_free char *mine = own_directory();
	struct steps steps = {0};
	pid_t child = start_idle();

	(void)state;
	assert_true(is_there(mine));
	elsewhere(come_and_go, -1);
	assert_true(is_there(mine));
	cgroup_join(cgroup, child, &steps);
	assert_int_equal(steps.count, 0);
	end_idle(child);
	elsewhere(come_and_go, -1);
	assert_true(is_there(mine));
	cgroup_free(cgroup);
	assert_false(is_there(mine));
}

static void the_dead_are_swept(void **state)
{
	char left[512] = "";
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	elsewhere(come_and_die, ends[1]);
	close(ends[1]);
	assert_true(read(ends[0], left, sizeof left - 1) > 0);
	close(ends[0]);
	cgroup_free(make());
	while (is_there(left)) /* somebody else sweeps it, too */
		cgroup_free(make());
}

/* A name like ours is not enough. */
static void other_directories_stay(void **state)
{
	static const char *const ends[] = {"", "-ns1-2-3-4", ".service"};

	(void)state;
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		auto_free char *path = xasprintf("%s/rlmd-%d%s", place, getpid(), ends[i]);
		bool stays;

		assert_int_equal(mkdir(path, 0755), 0);
		cgroup_free(make());
		stays = is_there(path);
		rmdir(path);
		assert_true(stays);
	}
}

/* An administrator who clears up may take it for garbage; it is made again, with its limits. */
static void a_lost_one_is_made_again(void **state)
{
	struct cgroup *cgroup = make();
	uint32_t layers = cgroup_layers(cgroup);
	auto_free char *mine = own_directory(), *path = xasprintf("%s/pids.max", mine);
	auto_free char *maximum = NULL;
	struct steps steps = {0};
	pid_t child = start_idle();

	(void)state;
	assert_int_equal(rmdir(mine), 0);
	cgroup_join(cgroup, child, &steps);
	assert_int_equal(steps.count, 0);
	assert_int_equal(cgroup_layers(cgroup), layers);
	maximum = read_whole(path);
	assert_string_equal(maximum, "1000\n");
	elsewhere(come_and_go, -1);
	end_idle(child);
	cgroup_free(cgroup);
	assert_false(is_there(mine));
}

/* A directory that is swept between its making and its lock is made again. */
static void many_at_once(void **state)
{
	enum { MANY = 6, TIMES = 30 };
	pid_t children[MANY];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		children[i] = fork();
		for (int j = 0; !children[i] && j < TIMES; j++) {
			struct cgroup *cgroup = make();
			auto_free char *mine = own_directory();

			if (!cgroup_layers(cgroup) || !mine || !is_there(mine))
				_exit(1);
			cgroup_free(cgroup);
		}
		if (!children[i])
			_exit(0);
	}
	for (int i = 0; i < MANY; i++) {
		int status;

		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
}

/* Whether one may be made here; `place` is set then. */
static bool find_place(void)
{
	auto_free char *memberships = read_whole("/proc/self/cgroup");
	auto_free char *mounts = read_whole("/proc/self/mountinfo");
	struct cgroup *cgroup = make();
	bool limiting = cgroup_layers(cgroup) & BIT(pids_group);
	bool unified;

	cgroup_free(cgroup);
	place = cgroup_directory("pids", text_of(memberships), text_of(mounts), &unified);
	return place && limiting;
}

/* Where a cgroup of ours is, out of what the kernel says about it: v1, v2, both, in a container. */
static void places_are_found(void **state)
{
	static const char hybrid[] = "4:memory:/user/me\n1:cpu,cpuacct:/\n0::/user/me\n";
	static const char unified[] = "0::/user.slice/me.scope\n";
	static const char mounts[] =
		"22 1 0:21 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n"
		"30 22 0:26 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
		"31 22 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
		"32 22 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
	static const char container[] =
		"31 22 0:27 /user /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
		"32 22 0:28 /elsewhere /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
	const struct {
		const char *controller, *memberships, *mounts, *place;
		bool unified;
	} cases[] = {
		{"memory", hybrid, mounts, "/sys/fs/cgroup/memory/user/me", false},
		{"cpu", hybrid, mounts, "/sys/fs/cgroup/cpu,cpuacct", false},
		{"pids", hybrid, mounts, "/sys/fs/cgroup/unified/user/me", true},
		{"memory", unified, mounts, "/sys/fs/cgroup/unified/user.slice/me.scope", true},
		{"memory", hybrid, container, "/sys/fs/cgroup/memory/me", false},
		{"memory", unified, container, NULL, true},
		{"memory", "", mounts, NULL, true},
		{"memory", "garbage\n:\n::\n", "more\n - \n - cgroup\n", NULL, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		bool is_unified;
		auto_free char *found = cgroup_directory(cases[i].controller,
							 text_of(cases[i].memberships),
							 text_of(cases[i].mounts), &is_unified);

		if (cases[i].place)
			assert_string_equal(found, cases[i].place);
		else
			assert_null(found);
		assert_int_equal(is_unified, cases[i].unified);
	}
}

static void write_limit(const char *directory, const char *limit)
{
	auto_free char *path = xasprintf("%s/memory.max", directory);
	auto_file FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(limit, file);
}

/* G8: half of what there is for us is no more than half of the smallest limit above us. */
static void limits_above_are_found(void **state)
{
	static const struct {
		const char *outer, *inner;
		uint64_t limit;
	} cases[] = {
		{"max\n", "max\n", UINT64_MAX},      {"1048576\n", "max\n", 1 << 20},
		{"max\n", "1048576\n", 1 << 20},     {"2097152\n", "1048576\n", 1 << 20},
		{"1048576\n", "2097152\n", 1 << 20}, {"", "garbage", UINT64_MAX},
	};
	char outer[] = "/tmp/rlmd-limits-XXXXXX";
	auto_free char *inner = NULL;

	(void)state;
	assert_non_null(mkdtemp(outer));
	inner = xasprintf("%s/inner", outer);
	assert_int_equal(mkdir(inner, 0700), 0);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		write_limit(outer, cases[i].outer);
		write_limit(inner, cases[i].inner);
		assert_int_equal(cgroup_memory_limit(inner, true), cases[i].limit);
		assert_int_equal(cgroup_memory_limit(inner, false), UINT64_MAX);
	}
	for (int i = 0; i < 2; i++) {
		auto_free char *path = xasprintf("%s/memory.max", i ? outer : inner);

		unlink(path);
		rmdir(i ? outer : inner);
	}
}

int main(void)
{
	const struct CMUnitTest texts[] = {
		cmocka_unit_test(places_are_found),
		cmocka_unit_test(limits_above_are_found),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_are_found),
		cmocka_unit_test(limits_above_are_found),
		cmocka_unit_test(other_directories_stay),
		cmocka_unit_test(a_lost_one_is_made_again),
		cmocka_unit_test(many_at_once),
		cmocka_unit_test(the_living_keep_theirs),
		cmocka_unit_test(the_dead_are_swept),
	};
	int failed;

	alloc_install();
	if (find_place())
		failed = cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
	else /* no cgroup may be made here */
		failed = cmocka_run_group_tests_name("cgroup", texts, NULL, NULL);
	free(place);
	return failed;
}
