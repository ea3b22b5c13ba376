/* sandbox/uids: uids that supervisors share out among them. */
#include "sandbox/uids.h"

#include <errno.h>
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

/* Programs that give out ids can ask which are taken. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uids_are_shared_out),
		cmocka_unit_test(ranges_may_overlap),
		cmocka_unit_test(locks_are_ours_alone),
		cmocka_unit_test(the_range_is_told),
	};

	alloc_install();
	return cmocka_run_group_tests_name("uids", tests, NULL, NULL);
}
