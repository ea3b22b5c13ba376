/* What supervisors share out among them, and what is shared out to us: uids, and memory by cgroups.
 */
#include <errno.h>
#include <fcntl.h>
#include <rlmd/sandbox.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "sandbox/cgroup.h"
#include "sandbox/uids.h"

/* Two supervisors at once do not give out the same uids, by whichever means they claim them. */
static void share_out(const char *file)
{
	struct uids one = {0}, other = {0};
	struct rlmd_error err;
	uint32_t uid, last = 0;

	uids_begin(&one, 0);
	uids_begin(&other, 0);
	if (file) {
		assert_int_equal(uids_lock(&one, file), 0);
		assert_int_equal(uids_lock(&other, file), 0);
	}
	for (int i = 0; i < 2 * UIDS_BLOCK; i++) {
		assert_true(uids_take(&one, &uid, &err));
		assert_true(uid >= UIDS_FIRST && uid != last);
		last = uid;
	}
	assert_true(uids_take(&other, &uid, &err));
	assert_true(one.block_count == 2 && other.block_count == 1);
	assert_int_not_equal((uid - UIDS_FIRST) / UIDS_BLOCK, (last - UIDS_FIRST) / UIDS_BLOCK);
	while (uids_take(&other, &uid, &err))
		;
	assert_int_equal(err.kind, RLMD_ERROR_SANDBOX);
	if (file) /* names are taken by others too */
		assert_int_equal(one.block_count + other.block_count, UIDS_BLOCKS);
	uids_done(&one);
	uids_done(&other);
}

/* All names are taken for a moment: not those of the machine, which others need meanwhile. */
static void uids_are_shared_out(void **state)
{
	char path[] = "/tmp/rlmd-uids-XXXXXX";
	int file = mkstemp(path);

	(void)state;
	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		print_message("# in the machine's own network namespace: there is no other\n");
	share_out(NULL);
	share_out(path);
	share_out(path); /* both are over: all is free again */
	close(file);
	unlink(path);
}

/* Whoever gives out ids can be told which are taken. */
static void the_range_is_told(void **state)
{
	uint32_t first, count;

	(void)state;
	rlmd_sandbox_uids(0, &first, &count);
	assert_int_equal(first, UIDS_FIRST);
	assert_int_equal(count, UIDS_COUNT);
	rlmd_sandbox_uids(70000, &first, NULL);
	assert_int_equal(first, 70016);
}

/* Ranges of one's own choice: where they overlap, nobody gets what the other one has. */
static void ranges_may_overlap(void **state)
{
	char path[] = "/tmp/rlmd-uids-XXXXXX";
	struct uids one = {0}, other = {0};
	bool taken[2 * UIDS_COUNT] = {false};
	int file = mkstemp(path);
	struct rlmd_error err;
	uint32_t uid;

	(void)state;
	uids_begin(&one, 70000);
	assert_int_equal(one.first, 70016); /* whole blocks */
	uids_begin(&other, 70016 + UIDS_COUNT / 2);
	assert_int_equal(uids_lock(&one, path), 0);
	assert_int_equal(uids_lock(&other, path), 0);
	for (int i = 0; i < UIDS_COUNT / 4; i++) {
		assert_true(uids_take(&one, &uid, &err));
		assert_true(uid >= 70016 && uid < 70016 + UIDS_COUNT);
		taken[uid - 70016] = true;
	}
	while (uids_take(&other, &uid, &err)) {
		assert_true(uid >= 70016 + UIDS_COUNT / 2 && uid < 70016 + UIDS_COUNT * 3 / 2);
		assert_false(taken[uid - 70016]);
	}
	assert_non_null(strstr(err.text, "no uid is left for a worker (75136 to 85375)"));
	uids_done(&one);
	uids_done(&other);
	close(file);
	unlink(path);
}

/* G5, G6: a file that others may open is no place for claims: they could hold all of them. */
static void locks_are_ours_alone(void **state)
{
	char path[] = "/tmp/rlmd-uids-XXXXXX";
	struct uids uids = {0};
	int file = mkstemp(path);

	(void)state;
	fchmod(file, 0644);
	assert_int_equal(uids_lock(&uids, path), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(uids_lock(&uids, "/dev/null"), -1);
	assert_int_equal(uids_lock(&uids, "/no/such/directory/file"), -1);
	assert_int_equal(errno, ENOENT);
	assert_false(uids.locked);
	close(file);
	unlink(path);
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
		auto_free char *place = cgroup_place(cases[i].controller,
						     text_of(cases[i].memberships),
						     text_of(cases[i].mounts), &is_unified);

		if (cases[i].place)
			assert_string_equal(place, cases[i].place);
		else
			assert_null(place);
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
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uids_are_shared_out),    cmocka_unit_test(ranges_may_overlap),
		cmocka_unit_test(locks_are_ours_alone),   cmocka_unit_test(places_are_found),
		cmocka_unit_test(limits_above_are_found), cmocka_unit_test(the_range_is_told),
	};

	alloc_install();
	return cmocka_run_group_tests_name("shares", tests, NULL, NULL);
}
