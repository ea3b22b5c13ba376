/* cli/tell: which lines are said, and that none of them does anything to a terminal. */
#include "cli/tell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "told.h"

static const struct rlmd_log_field fields[] = {{.name = "jobs", .number = 3}};

static const char *say_all(struct told *told, enum rlmd_log_level most, enum log_format format)
{
	tell_setup(most, format, false);
	told_begin(told);
	tell("a %s", "notice");
	tell_warning("a warning");
	tell_error("an error");
	tell_hint("a hint");
	tell_event(RLMD_LOG_INFO, "run", "1234567890", "an event");
	tell_record(RLMD_LOG_DEFAULT, "asked", fields, 1, "what was asked for");
	tell_record(RLMD_LOG_NOTICE, "progress", fields, 1, "progress");
	tell_setup(RLMD_LOG_NOTICE, LOG_FORMAT_TEXT, false);
	return told_end(told);
}

static void test_levels(void **state)
{
	struct told told;

	(void)state;
	assert_string_equal(say_all(&told, RLMD_LOG_ERROR, LOG_FORMAT_TEXT),
			    "rlmd: error: an error\na hint\nrlmd: what was asked for\n");
	assert_string_equal(
		say_all(&told, RLMD_LOG_NOTICE, LOG_FORMAT_TEXT),
		"rlmd: a notice\nrlmd: warning: a warning\nrlmd: error: an error\na hint\n"
		"rlmd: what was asked for\nrlmd: progress\n");
	assert_non_null(strstr(say_all(&told, RLMD_LOG_INFO, LOG_FORMAT_TEXT),
			       "rlmd: [12345678] an event\n"));
}

/* Fields are for programs alone. */
static void test_json(void **state)
{
	struct told told;

	(void)state;
	say_all(&told, RLMD_LOG_NOTICE, LOG_FORMAT_JSON);
	assert_non_null(strstr(told.text, "\"event\":\"hint\",\"message\":\"a hint\"}\n"));
	assert_non_null(strstr(told.text, "\"message\":\"progress\",\"jobs\":3}\n"));
}

/* Nothing that a model wrote acts on a terminal, or on a pipeline that reads the line. */
static void test_what_strangers_write(void **state)
{
	struct told told;

	(void)state;
	told_begin(&told);
	tell_error("x\033[31m ##vso[task] %s", "\r");
	assert_string_equal(told_end(&told), "rlmd: error: x\\x1b[31m ##vso\\x5btask] \\r\n");
}

static void test_colours(void **state)
{
	(void)state;
	setenv("TERM", "xterm", 1);
	assert_true(tell_can_color("always"));
	assert_false(tell_can_color("never"));
	setenv("TERM", "dumb", 1);
	assert_false(tell_can_live());
	assert_false(tell_can_color("auto"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_what_strangers_write),
		cmocka_unit_test(test_colours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
