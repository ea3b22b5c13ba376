#include "cli/option.h"

#include <event2/buffer.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"

/* Every name and letter stands for one option only. */
static void test_names_differ(void **state)
{
	(void)state;
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		assert_int_equal(option_find(option_table[i].name), i);
		for (size_t j = 0; j < i; j++)
			if (option_table[i].letter)
				assert_int_not_equal(option_table[i].letter,
						     option_table[j].letter);
	}
	assert_int_equal(option_find("no-such-option"), OPTION_COUNT);
	assert_int_equal(option_find(""), OPTION_COUNT);
}

/* A typing mistake finds its option; something else finds none. */
static void test_nearest(void **state)
{
	static const char *const names[] = {"exec", "trace"};

	(void)state;
	assert_string_equal(option_nearest_name("modle"), "model");
	assert_string_equal(option_nearest_name("max-itertions"), "max-iterations");
	assert_string_equal(option_nearest_name("contxt"), "context");
	assert_null(option_nearest_name("zzzzzzzz"));
	assert_null(option_nearest_name("a-name-that-is-longer-than-any-option-can-be"));
	assert_string_equal(option_nearest("exce", names, 2), "exec");
	assert_null(option_nearest("serve", names, 2));
}

/* --help fits a terminal of 80 columns and has a line for each option. */
static void test_help(void **state)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	auto_free char *help = NULL;
	char *rest, *line;

	(void)state;
	option_help(out, NULL, 0);
	help = text_drain(out, NULL);
	for (size_t i = 0; i < OPTION_COUNT; i++)
		assert_non_null(strstr(help, option_table[i].name));
	assert_non_null(strstr(help, "  -c, --context SRC "));
	assert_non_null(strstr(help, "(default: 500000)") || strstr(help, "(default:\n"));
	rest = help;
	while ((line = strsep(&rest, "\n"))) {
		if (strlen(line) > 80)
			fail_msg("longer than 80 columns: %s", line);
		assert_true(!*line || line[strlen(line) - 1] != ' ');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_differ),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
