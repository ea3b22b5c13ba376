/* source/sources: what a context is named, and which names it may not have. */
#include "source/sources.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/text.h"

static char place[] = "/tmp/test_sources-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(place));
	return chdir(place) || !file_write("a=b", text_of("x"), NULL) || mkdir("dir", 0700) ||
	       mkfifo("fifo", 0600);
}

static int tear_down(void **state)
{
	(void)state;
	return unlink("a=b") | rmdir("dir") | unlink("fifo") | rmdir(place);
}

static void test_forms(void **state)
{
	static const char *const given[] = {"-", "x=dir", "log=git:HEAD~1:src", "./a=b"};
	struct source sources[4] = {0};
	struct rlmd_error err = {0};

	(void)state;
	if (!sources_parse(given, 4, sources, &err))
		fail_msg("%s", err.text);
	assert_null(sources[0].name);
	assert_string_equal(sources[0].path, "-");
	assert_int_equal(sources[0].file.number, 0);
	assert_string_equal(sources[1].name, "x");
	assert_true(sources[1].directory);
	assert_null(sources[1].revision);
	assert_string_equal(sources[2].name, "log");
	assert_string_equal(sources[2].revision, "HEAD~1:src");
	assert_true(sources[2].directory);
	assert_null(sources[3].name); /* "./a" is no name */
	assert_string_equal(sources[3].path, "./a=b");
	assert_int_not_equal(sources[3].file.number, 0);
	assert_int_equal(sources_open(&sources[0], &err), STDIN_FILENO);
	sources_close(STDIN_FILENO);
	sources_close(sources_open(&sources[3], &err));
	sources_done(sources, 4);
}

#define MANY 3

static void test_refused(void **state)
{
	static const struct {
		const char *given[MANY];
		enum rlmd_error_kind kind;
		const char *text;
	} rows[] = {
		{{"a="}, RLMD_ERROR_USAGE, "a context 'a=' names no file"},
		{{""}, RLMD_ERROR_USAGE, "a context '' names no file"},
		{{"git:"}, RLMD_ERROR_USAGE, "'git:' names no revision"},
		{{"none"}, RLMD_ERROR_INPUT, "cannot read none: No such file"},
		{{"fifo"}, RLMD_ERROR_INPUT, "cannot read fifo: it is no regular file"},
		{{"-", "x=-"}, RLMD_ERROR_USAGE, "standard input can be read only once"},
		{{"x=dir", "y=dir", "x=-"}, RLMD_ERROR_USAGE, "two contexts are named 'x'"},
		{{"dir", "context=-"}, RLMD_ERROR_USAGE, "two contexts are named 'context'"},
		{{"while=dir"}, RLMD_ERROR_USAGE, "cannot be named 'while': a keyword of Python"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct source sources[MANY] = {0};
		struct rlmd_error err = {0};
		size_t count = 0;

		while (count < MANY && rows[i].given[count])
			count++;
		assert_false(sources_parse(rows[i].given, count, sources, &err));
		assert_int_equal(err.kind, rows[i].kind);
		if (!strstr(err.text, rows[i].text))
			fail_msg("of %s: %s", rows[i].given[0], err.text);
		sources_done(sources, count);
	}
}

static void test_names(void **state)
{
	char longest[202] = "";

	(void)state;
	memset(longest, 'a', 200);
	assert_true(sources_check_name("context", longest, NULL));
	longest[200] = 'a';
	assert_false(sources_check_name("context", longest, NULL));
	assert_true(sources_check_name("context", "_x1", NULL));
	assert_false(sources_check_name("context", "1x", NULL));
	assert_false(sources_check_name("context", "__x", NULL));
	assert_false(sources_check_name("context", "len", NULL));
	assert_false(sources_check_name("context", "llm_query", NULL));
	assert_true(sources_is_identifier("while"));
	assert_false(sources_is_identifier("a-b"));
	assert_false(sources_is_identifier(""));
	assert_false(sources_is_identifier("\xc3\xa9"));
}

/* A path that was a file when it was named may be none any more. */
static void test_changed(void **state)
{
	const char *const given[] = {"./a=b"};
	struct rlmd_error err = {0};
	struct source source = {0};

	(void)state;
	assert_true(sources_parse(given, 1, &source, &err));
	assert_int_equal(rename("a=b", "kept") | mkdir("a=b", 0700), 0);
	assert_int_equal(sources_open(&source, &err), -1);
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	assert_int_equal(rmdir("a=b"), 0);
	assert_int_equal(sources_open(&source, &err), -1);
	assert_int_equal(rename("kept", "a=b"), 0);
	sources_done(&source, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_changed),
	};

	return cmocka_run_group_tests_name("sources", tests, set_up, tear_down);
}
