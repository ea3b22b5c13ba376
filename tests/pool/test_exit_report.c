/* pool/exit_report: the words for each way in which a worker ends. */
#include "pool/exit_report.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_report(const struct process_exit *exit, enum exit_report_age age,
			  enum rlmd_error_kind kind, const char *wanted)
{
	struct rlmd_error err = {0};

	exit_report_write(exit, age, &err);
	assert_int_equal(err.kind, kind);
	assert_string_equal(err.text, wanted);
}

static void test_grown(void **state)
{
	static const struct {
		struct process_exit exit;
		const char *text;
	} rows[] = {
		{{.status = 3}, "the worker ended itself (exit status 3)"},
		{{.signaled = true, .status = SIGKILL},
		 "the worker was killed by signal 9 (SIGKILL); it probably needed more memory than it "
		 "may use"},
		{{.signaled = true, .status = SIGSEGV},
		 "the worker was killed by signal 11 (SIGSEGV); it probably ran out of memory, "
		 "recursed too deep in C code, or called abort()"},
		{{.signaled = true, .status = SIGXCPU},
		 "the worker was killed by signal 24 (SIGXCPU); it used up its processor time"},
		{{.signaled = true, .status = SIGUSR1},
		 "the worker was killed by signal 10 (SIGUSR1)"},
		{{.signaled = true, .status = 40},
		 "the worker was killed by signal 40 (real-time)"},
		{{.signaled = true, .status = SIGSYS},
		 "the worker was killed, for it made a system call that the sandbox forbids (SIGSYS)"},
		{{.signaled = true, .status = SIGKILL, .reason = "its limit of 8 threads"},
		 "the worker was killed: its limit of 8 threads"},
		{{.unknown = true},
		 "the worker has ended, and how is not known: this program ignores SIGCHLD, or waits "
		 "for children that it has not started"},
		{{.unknown = true, .reason = "x"}, "the worker was killed: x"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_report(&rows[i].exit, EXIT_REPORT_GROWN, RLMD_ERROR_WORKER, rows[i].text);
}

/* How far it had come says whose fault it was. */
static void test_ages(void **state)
{
	const struct process_exit exit = {.signaled = true, .status = SIGUSR1};

	(void)state;
	assert_report(&exit, EXIT_REPORT_LOADING, RLMD_ERROR_INPUT,
		      "while the inputs were loaded: the worker was killed by signal 10 (SIGUSR1)");
	assert_report(&exit, EXIT_REPORT_UNCONFINED, RLMD_ERROR_SANDBOX,
		      "before its walls stood: the worker was killed by signal 10 (SIGUSR1)");
}

static void test_late(void **state)
{
	static const struct {
		enum exit_report_age age;
		enum rlmd_error_kind kind;
		const char *text;
	} rows[] = {
		{EXIT_REPORT_UNCONFINED, RLMD_ERROR_SANDBOX, "no worker stood after 1.5s"},
		{EXIT_REPORT_LOADING, RLMD_ERROR_INPUT, "the inputs were not loaded after 1.5s"},
		{EXIT_REPORT_GROWN, RLMD_ERROR_WORKER, "no interrupt ended the code after 1.5s"},
	};
	struct rlmd_error err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		exit_report_of_late(rows[i].age, 1500, &err);
		assert_int_equal(err.kind, rows[i].kind);
		assert_string_equal(err.text, rows[i].text);
	}
	exit_report_of_late(EXIT_REPORT_GROWN, 0, &err);
	assert_string_equal(err.text, "no interrupt ended the code");
	exit_report_of_remains(1500, &err);
	assert_int_equal(err.kind, RLMD_ERROR_WORKER);
	assert_non_null(strstr(err.text, "than the 1.5s that a block may use"));
}

/* A worker that broke the protocol, and one for whose messages we had no room. */
static void test_refused(void **state)
{
	const struct rlmd_error lie = {.kind = RLMD_ERROR_WORKER, .text = "no such type"};
	const struct rlmd_error full = {.kind = RLMD_ERROR_INTERNAL, .text = "no room"};
	struct rlmd_error err;

	(void)state;
	exit_report_of_refused(&lie, &err);
	assert_int_equal(err.kind, RLMD_ERROR_WORKER);
	assert_string_equal(err.text, "the worker broke the protocol: no such type");
	exit_report_of_refused(&full, &err);
	assert_int_equal(err.kind, RLMD_ERROR_WORKER);
	assert_string_equal(err.text, "the worker was ended: no room");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grown),
		cmocka_unit_test(test_ages),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("exit_report", tests, NULL, NULL);
}
