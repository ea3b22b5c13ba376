/*
 * Cgroups of supervisors beside each other: what one that lives has is left alone, what a dead one
 * has left is swept, whatever pid namespaces they are in.
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

/* The directory of a supervisor, new, or NULL; the last that was made where it has more. */
static char *directory_of(pid_t supervisor)
{
	auto_free char *prefix = xasprintf("rlmd-%d-", supervisor);
	DIR *directory = opendir(place);
	struct dirent *entry;
	char *found = NULL;

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
	made = directory_of(getpid());
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
	auto_free char *mine = directory_of(getpid());
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
	assert_false(is_there(left));
}

/* A name like ours is not enough. */
static void other_directories_stay(void **state)
{
	static const char *const names[] = {"rlmd-", "rlmd-7-ns1-2-3-4", "rlmd-batch.service"};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		auto_free char *path = xasprintf("%s/%s", place, names[i]);
		bool mine = !mkdir(path, 0755), stays;

		cgroup_free(make());
		stays = is_there(path);
		if (mine)
			rmdir(path);
		assert_true(stays);
	}
}

/* An administrator who clears up may take it for garbage; it is made again, with its limits. */
static void a_lost_one_is_made_again(void **state)
{
	struct cgroup *cgroup = make();
	uint32_t layers = cgroup_layers(cgroup);
	auto_free char *mine = directory_of(getpid()), *path = xasprintf("%s/pids.max", mine);
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

/* Who finds a directory swept at the moment between its making and its lock makes another. */
static void many_at_once(void **state)
{
	enum { MANY = 6, TIMES = 30 };
	pid_t children[MANY];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		children[i] = fork();
		for (int j = 0; !children[i] && j < TIMES; j++) {
			struct cgroup *cgroup = make();
			auto_free char *mine = directory_of(getpid());

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

static void skip_without_cgroups(void)
{
	auto_free char *memberships = read_whole("/proc/self/cgroup");
	auto_free char *mounts = read_whole("/proc/self/mountinfo");
	struct cgroup *cgroup = make();
	bool limiting = cgroup_layers(cgroup) & BIT(pids_group);
	bool unified;

	cgroup_free(cgroup);
	place = cgroup_place("pids", text_of(memberships), text_of(mounts), &unified);
	if (place && limiting)
		return;
	printf("1..0 # SKIP no cgroup may be made here (pids controller: %s)\n",
	       place ? place : "not mounted");
	free(place);
	exit(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_directories_stay),
		cmocka_unit_test(a_lost_one_is_made_again),
		cmocka_unit_test(many_at_once),
		cmocka_unit_test(the_living_keep_theirs),
		cmocka_unit_test(the_dead_are_swept),
	};
	int failed;

	alloc_install();
	skip_without_cgroups();
	failed = cmocka_run_group_tests_name("cgroups", tests, NULL, NULL);
	free(place);
	return failed;
}
