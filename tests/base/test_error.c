/* Errors, for a person and for a program. */
#include "base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void test_set(void **state)
{
	struct rlmd_error err = {.http_status = 500};

	(void)state;
	assert_false(error_set(&err, RLMD_ERROR_BUDGET, "no %s left", "money"));
	assert_int_equal(err.kind, RLMD_ERROR_BUDGET);
	assert_int_equal(err.http_status, 0);
	assert_string_equal(err.text, "no money left");
	assert_false(error_set(NULL, RLMD_ERROR_BUDGET, "nobody wants to know"));
	assert_false(error_context(NULL, "nobody"));
}

static void test_errno(void **state)
{
	struct rlmd_error err;

	(void)state;
	errno = ENOENT;
	assert_false(error_errno(&err, RLMD_ERROR_INPUT, "cannot read %s", "x"));
	assert_string_equal(err.text, "cannot read x: No such file or directory");
	errno = EMFILE;
	assert_false(error_errno(&err, RLMD_ERROR_SANDBOX, "no pipes"));
	assert_string_equal(err.text, "no pipes: Too many open files (ulimit -n allows no more)");
}

/* The machine had none left of it, whatever was to be done with it. */
static void test_machine(void **state)
{
	static const struct {
		int number;
		enum rlmd_error_kind given, kind;
	} table[] = {
		{EMFILE, RLMD_ERROR_INPUT, RLMD_ERROR_MACHINE},
		{ENFILE, RLMD_ERROR_AUTH, RLMD_ERROR_MACHINE},
		{ENOMEM, RLMD_ERROR_INTERNAL, RLMD_ERROR_MACHINE},
		{EAGAIN, RLMD_ERROR_SANDBOX, RLMD_ERROR_MACHINE},
		{EAGAIN, RLMD_ERROR_INPUT, RLMD_ERROR_INPUT},
		{ENOSPC, RLMD_ERROR_INTERNAL, RLMD_ERROR_INTERNAL},
		{ENOENT, RLMD_ERROR_INPUT, RLMD_ERROR_INPUT},
	};
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		errno = table[i].number;
		error_errno(&err, table[i].given, "x");
		assert_int_equal(err.kind, table[i].kind);
	}
}

/* Context goes in front; the kind and the status stay as they are. */
static void test_context(void **state)
{
	struct rlmd_error err;

	(void)state;
	error_set(&err, RLMD_ERROR_AUTH, "no key");
	err.http_status = 401;
	assert_false(error_context(&err, "provider %d", 7));
	assert_string_equal(err.text, "provider 7: no key");
	assert_int_equal(err.kind, RLMD_ERROR_AUTH);
	assert_int_equal(err.http_status, 401);
}

/* Control characters are shown, wherever they come from. */
static void test_escaped(void **state)
{
	struct rlmd_error err;

	(void)state;
	error_set(&err, RLMD_ERROR_INPUT, "bad \x1b[31m\n\xff");
	assert_string_equal(err.text, "bad \\x1b[31m\\n\\xff");
	error_context(&err, "file \x1b.txt");
	assert_string_equal(err.text, "file \\x1b.txt: bad \\x1b[31m\\n\\xff");
}

/* Too long a text is cut, never overflows, and stays UTF-8 where it was. */
static void test_long(void **state)
{
	struct rlmd_error err;
	char text[2000];

	(void)state;
	for (size_t i = 0; i + 1 < sizeof text; i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	text[sizeof text - 1] = '\0';
	error_set(&err, RLMD_ERROR_INPUT, "%s", text);
	assert_in_range(strlen(err.text), 500, sizeof err.text - 1);
	error_context(&err, "front");
	assert_in_range(strlen(err.text), 500, sizeof err.text - 1);
	assert_memory_equal(err.text, "front: \xc3\xa9", 9);
	error_context(&err, "%s", text);
	assert_in_range(strlen(err.text), 500, sizeof err.text - 1);
	errno = EPERM;
	error_errno(&err, RLMD_ERROR_INPUT, "%s", text);
	assert_in_range(strlen(err.text), 500, sizeof err.text - 1);
}

/* The exit status table of the command line; each kind has a name of its own. */
static void test_table(void **state)
{
	static const struct {
		enum rlmd_error_kind kind;
		const char *name;
		int exit;
	} rows[] = {
		{RLMD_ERROR_NONE, "none", 0},           {RLMD_ERROR_INTERNAL, "internal", 1},
		{RLMD_ERROR_USAGE, "usage", 2},         {RLMD_ERROR_AUTH, "auth", 4},
		{RLMD_ERROR_THROTTLED, "throttled", 5}, {RLMD_ERROR_BUDGET, "budget", 6},
		{RLMD_ERROR_SANDBOX, "sandbox", 7},     {RLMD_ERROR_INPUT, "input", 8},
		{RLMD_ERROR_REFUSED, "refused", 10},    {RLMD_ERROR_CANCELLED, "cancelled", 130},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_string_equal(rlmd_error_name(rows[i].kind), rows[i].name);
		assert_int_equal(rlmd_error_exit_status(rows[i].kind), rows[i].exit);
	}
	for (int a = RLMD_ERROR_NONE; a <= RLMD_ERROR_CANCELLED; a++) {
		assert_true(strlen(rlmd_error_meaning((enum rlmd_error_kind)a)) > 0);
		for (int b = RLMD_ERROR_NONE; b < a; b++)
			assert_string_not_equal(rlmd_error_name((enum rlmd_error_kind)a),
						rlmd_error_name((enum rlmd_error_kind)b));
	}
}

/* One mapping only: what a run or a command that ends with this kind stopped for. */
static void test_stops(void **state)
{
	static const enum rlmd_stop stops[] = {
		[RLMD_ERROR_NONE] = RLMD_STOP_NONE,
		[RLMD_ERROR_INTERNAL] = RLMD_STOP_NONE,
		[RLMD_ERROR_USAGE] = RLMD_STOP_NONE,
		[RLMD_ERROR_NOT_FOUND] = RLMD_STOP_PROVIDER_ERROR,
		[RLMD_ERROR_AUTH] = RLMD_STOP_PROVIDER_ERROR,
		[RLMD_ERROR_BILLING] = RLMD_STOP_PROVIDER_ERROR,
		[RLMD_ERROR_THROTTLED] = RLMD_STOP_PROVIDER_ERROR,
		[RLMD_ERROR_OVERLOADED] = RLMD_STOP_PROVIDER_ERROR,
		[RLMD_ERROR_NETWORK] = RLMD_STOP_PROVIDER_ERROR,
		[RLMD_ERROR_TIMEOUT] = RLMD_STOP_PROVIDER_ERROR,
		[RLMD_ERROR_BAD_REPLY] = RLMD_STOP_PROVIDER_ERROR,
		[RLMD_ERROR_BAD_REQUEST] = RLMD_STOP_PROVIDER_ERROR,
		[RLMD_ERROR_BUDGET] = RLMD_STOP_MAX_COST,
		[RLMD_ERROR_NO_ANSWER] = RLMD_STOP_NO_CODE,
		[RLMD_ERROR_SANDBOX] = RLMD_STOP_SANDBOX_ERROR,
		[RLMD_ERROR_WORKER] = RLMD_STOP_SANDBOX_ERROR,
		[RLMD_ERROR_INPUT] = RLMD_STOP_NONE,
		[RLMD_ERROR_CONTEXT_OVERFLOW] = RLMD_STOP_PROVIDER_ERROR,
		[RLMD_ERROR_REFUSED] = RLMD_STOP_REFUSED,
		[RLMD_ERROR_REPLAY] = RLMD_STOP_PROVIDER_ERROR,
		[RLMD_ERROR_CANCELLED] = RLMD_STOP_INTERRUPTED,
	};

	(void)state;
	assert_int_equal(COUNT(stops), RLMD_ERROR_CANCELLED + 1);
	for (size_t i = 0; i < COUNT(stops); i++) {
		struct rlmd_error err = {.kind = (enum rlmd_error_kind)i};

		assert_int_equal(error_stop(&err), stops[i]);
	}
}

/* Which limit was reached stands in the error, until another one takes its place. */
static void test_limit(void **state)
{
	struct rlmd_error err;

	(void)state;
	assert_false(error_limit(&err, RLMD_STOP_MAX_TIME, "%s is over", "it"));
	assert_int_equal(err.kind, RLMD_ERROR_BUDGET);
	assert_int_equal(error_stop(&err), RLMD_STOP_MAX_TIME);
	assert_string_equal(err.text, "it is over");
	error_context(&err, "really");
	assert_int_equal(error_stop(&err), RLMD_STOP_MAX_TIME);
	error_set(&err, RLMD_ERROR_AUTH, "no key");
	assert_int_equal(error_stop(&err), RLMD_STOP_PROVIDER_ERROR);
	assert_false(error_limit(NULL, RLMD_STOP_MAX_TIME, "nobody wants to know"));
}

static void test_named(void **state)
{
	(void)state;
	for (int i = RLMD_ERROR_NONE + 1; i <= RLMD_ERROR_CANCELLED; i++)
		assert_int_equal(error_named(text_of(rlmd_error_name((enum rlmd_error_kind)i))), i);
	assert_int_equal(error_named(text_of("none")), RLMD_ERROR_NONE);
	assert_int_equal(error_named(text_of("")), RLMD_ERROR_NONE);
}

static const char BUDGET[] = "Budget exhausted, answer was forced";

/* LIB-24's words, ENG-20's warnings, the names of the result object, and the kind of error. */
static void test_words_of_stops(void **state)
{
	static const struct {
		enum rlmd_stop stop;
		const char *name, *words, *warning;
		enum rlmd_error_kind kind;
	} rows[] = {
		{RLMD_STOP_MAX_COST, "max_cost", "Cost budget exhausted", BUDGET,
		 RLMD_ERROR_BUDGET},
		{RLMD_STOP_MAX_TOKENS, "max_tokens", "Token budget exhausted", BUDGET,
		 RLMD_ERROR_BUDGET},
		{RLMD_STOP_MAX_TIME, "max_time", "Time budget exhausted", BUDGET,
		 RLMD_ERROR_BUDGET},
		{RLMD_STOP_MAX_ITERATIONS, "max_iterations", "Max iterations reached", BUDGET,
		 RLMD_ERROR_BUDGET},
		{RLMD_STOP_MAX_CALLS, "max_calls", "Max calls reached", BUDGET, RLMD_ERROR_BUDGET},
		{RLMD_STOP_MAX_DEPTH, "max_depth", "Max depth reached", NULL, RLMD_ERROR_BUDGET},
		{RLMD_STOP_MAX_SUBRUNS, "max_subruns", "Max sub-runs reached", NULL,
		 RLMD_ERROR_BUDGET},
		{RLMD_STOP_NO_CODE, "no_code",
		 "three turns in a row had neither code nor an answer",
		 "No code and no answer, answer was forced", RLMD_ERROR_NO_ANSWER},
		{RLMD_STOP_INTERRUPTED, "interrupted", "Interrupted",
		 "Interrupted, answer was forced", RLMD_ERROR_CANCELLED},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_string_equal(rlmd_stop_name(rows[i].stop), rows[i].name);
		assert_string_equal(error_stop_words(rows[i].stop), rows[i].words);
		assert_int_equal(error_of_stop(rows[i].stop), rows[i].kind);
		if (rows[i].warning)
			assert_string_equal(error_stop_warning(rows[i].stop), rows[i].warning);
		else
			assert_null(error_stop_warning(rows[i].stop));
	}
}

/* No answer is forced for what ends a run by itself, and nothing is said of what goes on. */
static void test_not_forced(void **state)
{
	static const enum rlmd_stop ends[] = {RLMD_STOP_FINAL, RLMD_STOP_PROVIDER_ERROR,
					      RLMD_STOP_SANDBOX_ERROR, RLMD_STOP_REFUSED};

	(void)state;
	assert_null(rlmd_stop_name(RLMD_STOP_NONE));
	assert_null(error_stop_words(RLMD_STOP_NONE));
	for (size_t i = 0; i < COUNT(ends); i++) {
		assert_non_null(rlmd_stop_name(ends[i]));
		assert_null(error_stop_words(ends[i]));
		assert_null(error_stop_warning(ends[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_errno),
		cmocka_unit_test(test_machine),
		cmocka_unit_test(test_context),
		cmocka_unit_test(test_escaped),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_stops),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_named),
		cmocka_unit_test(test_words_of_stops),
		cmocka_unit_test(test_not_forced),
	};

	return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
