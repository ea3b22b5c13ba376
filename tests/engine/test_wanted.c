/* Which module a traceback wanted: engine/wanted.h. */
#include "engine/wanted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define NOT_HERE "': nothing can be installed here. There is the standard library\n"

static void the_last_line_names_it(void **state)
{
	char name[WANTED_MAX + 1];

	(void)state;
	assert_true(wanted_module(
		text_of("Traceback (most recent call last):\n  File \"<block 1>\", line 1\n"
			"ModuleNotFoundError: No module named 'pandas" NOT_HERE),
		name));
	assert_string_equal(name, "pandas");
	assert_true(
		wanted_module(text_of("ModuleNotFoundError: No module named '_a1" NOT_HERE), name));
	assert_string_equal(name, "_a1");
}

static void nothing_else_is_a_name(void **state)
{
	static const char *const others[] = {
		"",
		"\n",
		"ModuleNotFoundError: No module named 'pandas'",
		"ModuleNotFoundError: No module named 'tkinter': this part of the standard library is left out",
		"ModuleNotFoundError: No module named '" NOT_HERE,
		"ModuleNotFoundError: No module named '\x1b[31mx" NOT_HERE,
		"ModuleNotFoundError: No module named 'a b" NOT_HERE,
		"ModuleNotFoundError: No module named 'a",
		"ValueError: ModuleNotFoundError: No module named 'a" NOT_HERE,
		"ModuleNotFoundError: No module named 'a" NOT_HERE "ValueError: something else\n",
		"ModuleNotFoundError: No module named "
		"'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" NOT_HERE,
	};
	char name[WANTED_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_false(wanted_module(text_of(others[i]), name));
	assert_false(wanted_module((struct rlmd_text){0}, name)); /* a block that did not fail */
	assert_false(wanted_module(
		text_from("ModuleNotFoundError: No module named 'a\0b" NOT_HERE,
			  sizeof "ModuleNotFoundError: No module named 'a\0b" NOT_HERE - 1),
		name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_line_names_it),
		cmocka_unit_test(nothing_else_is_a_name),
	};

	return cmocka_run_group_tests_name("wanted", tests, NULL, NULL);
}
