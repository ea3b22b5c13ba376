/* source/notebook: a notebook without the outputs of its cells, whatever parts it comes in. */
#include "source/notebook.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void assert_left(const char *text, const char *wanted)
{
	for (size_t part = 1; part <= strlen(text); part++) {
		char bytes[512], left[512] = "";
		struct notebook notebook = {0};
		size_t size = 0;

		for (size_t at = 0; at < strlen(text); at += part) {
			size_t some = strlen(text) - at < part ? strlen(text) - at : part;

			memcpy(bytes, text + at, some);
			some = notebook_filter(&notebook, bytes, some);
			memcpy(left + size, bytes, some);
			size += some;
		}
		left[size] = '\0';
		assert_string_equal(left, wanted);
		assert_int_equal(notebook.dropped, strcmp(text, wanted) != 0);
	}
}

static void test_outputs(void **state)
{
	(void)state;
	assert_left(
		"{\n \"cells\": [\n  {\n   \"outputs\": [\n    {\n     \"data\": [\n"
		"      \"]\"\n     ]\n    }\n   ],\n   \"source\": [\n    \"x = 1\"\n   ]\n  }\n"
		" ]\n}\n",
		"{\n \"cells\": [\n  {\n   \"outputs\": [\n    \n     \n"
		"      \n     \n    \n   ],\n   \"source\": [\n    \"x = 1\"\n   ]\n  }\n"
		" ]\n}\n");
	assert_left("   \"outputs\": [\r\n    1\r\n   ]\r\n",
		    "   \"outputs\": [\r\n    \r\n   ]\r\n");
}

static void test_none(void **state)
{
	static const char *const texts[] = {
		"",
		"   \"outputs\": [],\n   \"source\": [\n    1\n   ]\n",
		"    \"print(\\\"outputs\\\": [\",\n    1\n",
		"  x \"outputs\": [\n   1\n",
		"{\"cells\":[{\"outputs\":[{\"a\":1}]}]}",
		"\"outputs\": [1,\n2]\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_left(texts[i], texts[i]);
}

static void test_names(void **state)
{
	(void)state;
	assert_true(notebook_is_name("a/b.ipynb"));
	assert_true(notebook_is_name("A.IPYNB"));
	assert_false(notebook_is_name(".ipynb"));
	assert_false(notebook_is_name("a.ipynb.py"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outputs),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
