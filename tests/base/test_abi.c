/* Structs that grow: what an older or a newer caller has of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/abi.h"

struct first {
	size_t size;
	int a;
	int b;
};

struct second {
	size_t size;
	int a;
	int b;
	int64_t c;
};

static void test_take(void **state)
{
	struct second ours;
	struct first older = {.size = sizeof older, .a = 1, .b = 2};
	struct second same = {.size = sizeof same, .a = 1, .c = 3};

	(void)state;
	ours.c = 9;
	assert_true(abi_copy_in(&ours, sizeof ours, &older, sizeof older, "x", NULL));
	assert_true(ours.a == 1 && ours.b == 2 && ours.c == 0);
	assert_true(abi_copy_in(&ours, sizeof ours, &same, sizeof older, "x", NULL));
	assert_true(ours.a == 1 && ours.b == 0 && ours.c == 3);
	ours.a = 9;
	assert_true(abi_copy_in(&ours, sizeof ours, NULL, sizeof older, "x", NULL));
	assert_true(ours.a == 0 && ours.c == 0);
}

static void test_take_newer(void **state)
{
	struct second newer = {.size = sizeof newer, .a = 1};
	struct rlmd_error err = {0};
	struct first ours;

	(void)state;
	assert_true(abi_copy_in(&ours, sizeof ours, &newer, sizeof ours, "x", &err));
	assert_int_equal(ours.a, 1);
	newer.c = 1;
	assert_false(abi_copy_in(&ours, sizeof ours, &newer, sizeof ours, "x", &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(err.text, "struct x asks for something that rlmd "));
}

static void test_no_size(void **state)
{
	struct first ours, theirs = {.a = 1};
	struct rlmd_error err = {0};

	(void)state;
	for (theirs.size = 0; theirs.size < sizeof theirs; theirs.size++) {
		assert_false(abi_copy_in(&ours, sizeof ours, &theirs, sizeof theirs, "x", &err));
		assert_int_equal(err.kind, RLMD_ERROR_USAGE);
		assert_non_null(strstr(err.text, "set it to sizeof(struct x)"));
		assert_false(abi_copy_out(&theirs, &ours, sizeof ours, sizeof theirs));
		assert_int_equal(theirs.a, 1);
	}
	assert_false(abi_copy_out(NULL, &ours, sizeof ours, sizeof theirs));
}

static void test_give(void **state)
{
	struct second ours = {.a = 1, .b = 2, .c = 3}, same = {.size = sizeof same};
	struct first older = {.size = sizeof older, .a = 9}, small = {.a = 4, .b = 5};

	(void)state;
	assert_true(abi_copy_out(&older, &ours, sizeof ours, sizeof older));
	assert_true(older.size == sizeof older && older.a == 1 && older.b == 2);
	same.c = 9;
	assert_true(abi_copy_out(&same, &small, sizeof small, sizeof small));
	assert_true(same.size == sizeof same && same.a == 4 && same.c == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_take),
		cmocka_unit_test(test_take_newer),
		cmocka_unit_test(test_no_size),
		cmocka_unit_test(test_give),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
