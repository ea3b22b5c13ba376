/* review/code: files by their paths, lines by their numbers, and which of them were changed. */
#include "review/code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

static void add(struct code *code, const char *path, const char *text)
{
	code_add(code, text_of(path), text_of(text));
}

static void test_paths(void **state)
{
	struct code code = {.prefix = xstrdup("lib/")};

	(void)state;
	add(&code, "b.c", "older\n");
	add(&code, "a.c", "a\n");
	add(&code, "b.c", "newer\n");
	code_seal(&code);
	assert_int_equal(code.count, 2);
	assert_true(text_equal(code_find(&code, text_of("b.c"))->text, "newer\n"));
	assert_string_equal(code_find(&code, text_of("b.c"))->name, "lib/b.c");
	/* as a model may name it, too */
	assert_non_null(code_find(&code, text_of("./a.c")));
	assert_non_null(code_find(&code, text_of("lib/a.c")));
	assert_null(code_find(&code, text_of("c.c")));
	assert_null(code_find(&code, text_of("")));
	code_done(&code);
	assert_int_equal(code.count, 0);
}

static void test_lines(void **state)
{
	struct code code = {0};
	const struct code_file *file;

	(void)state;
	add(&code, "a", "\xef\xbb\xbf one\r\n\n\tthree\n four");
	add(&code, "empty", "");
	add(&code, "broken", "a\xff\nb\n");
	code_seal(&code);
	file = code_find(&code, text_of("a"));
	assert_int_equal(file->lines, 4);
	assert_true(text_equal(code_line(file, 3), "\tthree\n"));
	assert_true(text_equal(code_line_trimmed(file, 1), "one"));
	assert_true(text_equal(code_line_trimmed(file, 2), ""));
	assert_true(text_equal(code_line(file, 4), " four"));
	assert_int_equal(code_line_of(file, 0), 1);
	assert_int_equal(code_line_of(file, 8), 1);
	assert_int_equal(code_line_of(file, 9), 2);
	assert_int_equal(code_line_of(file, 10), 3);
	assert_int_equal(code_line_of(file, 22), 4);
	assert_int_equal(code_find(&code, text_of("empty"))->lines, 0);
	file = code_find(&code, text_of("broken"));
	assert_true(text_equal(code_line(file, 1), "a\xef\xbf\xbd\n"));
	assert_int_equal(file->lines, 2);
	code_done(&code);
}

static void test_changes(void **state)
{
	struct code code = {.prefix = xstrdup("lib/")};
	const struct code_file *file;

	(void)state;
	add(&code, "a", "1\n2\n3\n4\n5\n");
	add(&code, "b", "1\n");
	code_seal(&code);
	code_set_changes(&code, text_of("[{\"path\": \"a\", \"status\": \"modified\", \"hunks\": ["
					"{\"changed\": [[2, 2]]}, {\"changed\": [[4, 5], [0, 9], "
					"[3, 1]]}]},"
					"{\"path\": \"big\", \"status\": \"added\"},"
					"{\"path\": \"gone\", \"status\": \"deleted\"}]"));
	file = code_find(&code, text_of("a"));
	assert_int_equal(file->change_count, 2);
	assert_false(code_changed(file, 1, 1));
	assert_true(code_changed(file, 1, 2));
	assert_false(code_changed(file, 3, 3));
	assert_true(code_changed(file, 5, 100));
	assert_false(code_changed(code_find(&code, text_of("b")), 1, 1));
	assert_int_equal(code.unread_count, 1);
	assert_string_equal(code.unread[0], "lib/big");
	code_set_changes(&code, text_of("no JSON"));
	code_set_changes(&code, (struct rlmd_text){0});
	assert_int_equal(code.unread_count, 1);
	code_done(&code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_changes),
	};

	return cmocka_run_group_tests_name("code", tests, NULL, NULL);
}
