/* batch/id_map: what was put in is found, and nothing else. */
#include "batch/id_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void test_many(void **state)
{
	enum { COUNT = 20000 };
	struct id_map *map = id_map_new();
	char id[32];

	(void)state;
	for (uint64_t i = 0; i < COUNT; i++) {
		bool is_new = false;

		snprintf(id, sizeof id, "job-%d", (int)i);
		assert_null(id_map_find(map, id));
		*id_map_add(map, id, &is_new) = i;
		assert_true(is_new);
	}
	assert_int_equal(id_map_count(map), COUNT);
	for (uint64_t i = 0; i < COUNT; i++) {
		bool is_new = true;

		snprintf(id, sizeof id, "job-%d", (int)i);
		assert_int_equal(*id_map_find(map, id), i);
		assert_int_equal(*id_map_add(map, id, &is_new), i);
		assert_false(is_new);
	}
	assert_int_equal(id_map_count(map), COUNT);
	assert_null(id_map_find(map, "job-20000"));
	assert_int_equal(*id_map_add(map, "", NULL), 0);
	id_map_free(map);
	id_map_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_many)};

	return cmocka_run_group_tests_name("id_map", tests, NULL, NULL);
}
