/* async/substitute: what a reference is, and what an input becomes. */
#include "async/substitute.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"

static void test_ids(void **state)
{
	static const struct {
		const char *text;
		size_t size;
	} rows[] = {{"a b", 1},      {"step-1.a:b/c@d+e_f}}", 18},
		    {"\xc3\xa9", 2}, {"", 0},
		    {" a", 0},       {"{a", 0},
		    {"a\\b", 1}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(substitute_id(text_of(rows[i].text)), rows[i].size);
	assert_int_equal(substitute_id(text_from("a\0b", 3)), 1);
}

/* The response of "a" is "A", of "long" is ten bytes; the others have none. */
static struct rlmd_text response(void *owner, struct rlmd_text id)
{
	++*(size_t *)owner;
	return text_equal(id, "a")      ? text_of("A")
	       : text_equal(id, "long") ? text_of("0123456789")
					: (struct rlmd_text){0};
}

static void test_inputs(void **state)
{
	static const char *const rows[][2] = {
		{"", ""},
		{"plain", "plain"},
		{"{{a}}", "A"},
		{"x{{ a }}y{{a}}", "xAyA"},
		{"{{long}}!", "0123456789!"},
		{"[{{none}}]", "[]"},
		/* no reference */
		{"{{}} {{ }} {{a b}} {a} {{a} {{a", "{{}} {{ }} {{a b}} {a} {{a} {{a"},
		{"{{{a}}}", "{A}"},
		{"{{\ta}}", "{{\ta}}"},
		/* made plain: half of the backslashes go, an odd one makes it text */
		{"\\{{a}}", "{{a}}"},
		{"\\\\{{a}}", "\\A"},
		{"\\\\\\{{a}}", "\\{{a}}"},
		{"\\{{ a }}{{a}}", "{{ a }}A"},
		{"\\n \\{{}} \\", "\\n \\{{}} \\"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t asked = 0, size;
		auto_free char *output = substitute(text_of(rows[i][0]), 100, response, &asked,
						    &size);

		assert_string_equal(output, rows[i][1]);
		assert_int_equal(size, strlen(rows[i][1]));
	}
}

/* A text that is put in is no template. */
static struct rlmd_text itself(void *owner, struct rlmd_text id)
{
	(void)owner;
	(void)id;
	return text_of("{{a}}");
}

static void test_once(void **state)
{
	size_t size;
	auto_free char *output = substitute(text_of("{{a}}{{b}}"), 100, itself, NULL, &size);

	(void)state;
	assert_string_equal(output, "{{a}}{{a}}");
}

static void test_limit(void **state)
{
	size_t asked = 0, size;
	auto_free char *output = substitute(text_of("{{long}}"), 10, response, &asked, &size);

	(void)state;
	assert_string_equal(output, "0123456789");
	assert_null(substitute(text_of("{{long}}+"), 10, response, &asked, &size));
	assert_int_equal(size, 11);
}

/* An id of one byte more than a plan takes is none. */
static void test_long_ids(void **state)
{
	char input[RLMD_PLAN_ID_MAX + 8] = "{{";
	size_t asked = 0, size;
	auto_free char *output = NULL, *same = NULL;

	(void)state;
	memset(input + 2, 'b', RLMD_PLAN_ID_MAX);
	strcpy(input + 2 + RLMD_PLAN_ID_MAX, "}}");
	output = substitute(text_of(input), sizeof input, response, &asked, &size);
	assert_string_equal(output, "");
	strcpy(input + 2 + RLMD_PLAN_ID_MAX, "b}}");
	same = substitute(text_of(input), sizeof input, response, &asked, &size);
	assert_string_equal(same, input);
}

/* The pieces that a plan's checks see are the same. */
static void test_pieces(void **state)
{
	struct substitute_scan scan = {.rest = text_of("x\\\\{{a}} \\{{b}}")};
	struct rlmd_text piece;

	(void)state;
	assert_int_equal(substitute_next(&scan, &piece), SUBSTITUTE_TEXT);
	assert_true(text_equal(piece, "x\\"));
	assert_int_equal(substitute_next(&scan, &piece), SUBSTITUTE_REFERENCE);
	assert_true(text_equal(piece, "a"));
	assert_int_equal(substitute_next(&scan, &piece), SUBSTITUTE_TEXT);
	assert_true(text_equal(piece, " "));
	assert_int_equal(substitute_next(&scan, &piece), SUBSTITUTE_TEXT);
	assert_true(text_equal(piece, "{{b}}"));
	assert_int_equal(substitute_next(&scan, &piece), SUBSTITUTE_END);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),    cmocka_unit_test(test_inputs),
		cmocka_unit_test(test_once),   cmocka_unit_test(test_limit),
		cmocka_unit_test(test_pieces), cmocka_unit_test(test_long_ids),
	};

	alloc_install();
	return cmocka_run_group_tests_name("substitute", tests, NULL, NULL);
}
