/* cli/session: which notes are told, what a session waits for, and the exit status at its end. */
#include "cli/session.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/text.h"
#include "child.h"
#include "cli/interrupt.h"
#include "directory.h"
#include "told.h"

static struct session session;
static struct told told;

static int enter(void **state)
{
	(void)state;
	session = (struct session){.command = COMMAND_EXEC, .notes = json_array()};
	config_init(&session.config);
	session.config.provider = xstrdup("ollama");
	return directory_enter();
}

static int leave(void **state)
{
	(void)state;
	output_free(session.output);
	json_decref(session.notes);
	config_done(&session.config);
	return directory_leave((const char *const[]){"out", NULL});
}

static void set(enum option_id option, const char *value)
{
	assert_true(config_set(&session.config, CONFIG_ARGUMENT, option, value, NULL));
}

static void test_notes(void **state)
{
	const char *strays[] = {"one", "two", "one", NULL}, *text;

	(void)state;
	session.warnings = strays;
	told_begin(&told);
	session_note_strays(&session);
	session_note(&session, "two");
	text = told_end(&told);
	assert_string_equal(text, "rlmd: warning: one\nrlmd: warning: two\n");
	assert_int_equal(json_array_size(session.notes), 2);
	session.warnings = NULL;
}

/* Of a run that never began: all that a result has, so that a script finds what it looks for. */
static void test_no_result(void **state)
{
	struct rlmd_error err;
	json_t *object, *usage;

	(void)state;
	error_limit(&err, RLMD_STOP_MAX_TIME, "there is no time");
	json_array_append_new(session.notes, json_string("a note"));
	object = session_no_result(&session, &err);
	usage = json_object_get(object, "usage");
	assert_true(json_is_false(json_object_get(object, "success")));
	assert_string_equal(json_get_string(object, "stopReason"), "max_time");
	assert_string_equal(json_get_string(json_object_get(object, "error"), "kind"), "budget");
	assert_string_equal(json_get_string(json_object_get(object, "error"), "message"),
			    "there is no time");
	assert_int_equal(json_integer_value(json_object_get(usage, "llmCalls")), 0);
	assert_true(json_is_true(json_object_get(usage, "costComplete")));
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(object, "warnings"), 0)),
		"a note");
	json_decref(object);
	object = session_no_result(&session, NULL);
	assert_true(json_is_true(json_object_get(object, "success")));
	assert_true(json_is_null(json_object_get(object, "stopReason")));
	assert_null(json_object_get(object, "error"));
	json_decref(object);
}

static void test_forms_exclude_each_other(void **state)
{
	struct rlmd_error err;

	(void)state;
	set(OPTION_json, "true");
	set(OPTION_jsonl, "true");
	assert_false(session_open_output(&session, OUTPUT_ANSWER, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
}

/* The work has the time that reading the input has left of it. */
static void test_time(void **state)
{
	struct rlmd_error err;

	(void)state;
	session.time = (struct input_time){3600000, clock_ms() + 1800000};
	assert_true(session_spend_time(&session, &err));
	assert_in_range(session.limits.time_ms, 1, 1800000);
	session.time.deadline = clock_ms() - 1;
	assert_false(session_spend_time(&session, &err));
	assert_int_equal(err.kind, RLMD_ERROR_BUDGET);
	assert_string_equal(err.text,
			    "reading the input took all of the 60m00s that --max-time allows");
}

/* The exit status of an end; what was told of it is in `told`. */
static int report(const char *to, const struct rlmd_error *failure, int status)
{
	json_t *object = session_no_result(&session, failure);
	const struct session_result result = {.object = object,
					      .answer = text_of(failure ? "" : "forty-two"),
					      .failure = failure,
					      .status = status};
	int exit_status;

	set(OPTION_output, to);
	assert_true(session_open_output(&session, OUTPUT_ANSWER, NULL));
	told_begin(&told);
	exit_status = session_report(&session, &result);
	told_end(&told);
	output_free(take_pointer(&session.output));
	json_decref(object);
	return exit_status;
}

static void test_status(void **state)
{
	struct rlmd_error failure;

	(void)state;
	assert_int_equal(report("out", NULL, 0), 0);
	assert_content("out", "forty-two\n");
	assert_string_equal(told.text, "");
	assert_int_equal(report("out", NULL, 3), 3);
	error_set(&failure, RLMD_ERROR_INPUT, "it is out of words");
	assert_int_equal(report("out", &failure, 6), 6);
	assert_string_equal(told.text, "rlmd: error: it is out of words\n");
	session.signal = SIGINT;
	assert_int_equal(report("out", &failure, 6), 128 + SIGINT);
}

/* A user who named no provider is told which one was asked for nothing. */
static void test_unreachable(void **state)
{
	struct rlmd_error failure;

	(void)state;
	error_set(&failure, RLMD_ERROR_NETWORK, "nobody is there");
	report("out", &failure, 4);
	assert_non_null(strstr(told.text, "no provider was named, so ollama was asked"));
	set(OPTION_provider, "ollama");
	report("out", &failure, 4);
	assert_null(strstr(told.text, "no provider was named"));
}

/* An answer that cannot be written is a failure, whatever became of the work. */
static void test_full_disk(void **state)
{
	(void)state;
	assert_int_equal(report("/dev/full", NULL, 0), rlmd_error_exit_status(RLMD_ERROR_INTERNAL));
	assert_non_null(strstr(told.text, "No space left on device"));
}

/* --- the command line ---------------------------------------------------------------- */

/* Before anything is begun, and with a line of advice. */
static void test_command_lines_that_make_no_sense(void **state)
{
	static const struct {
		enum command_id command;
		const char *arguments[3], *wrong;
	} cases[] = {
		{COMMAND_EXEC, {NULL}, "there is no task"},
		{COMMAND_EXEC, {"a", "b"}, "'b' is one word too many"},
		{COMMAND_PLAN, {NULL}, "there is no plan"},
		{COMMAND_PLAN, {"a", "b"}, "'b' is one argument too many"},
		{COMMAND_PLAN, {"--strict", "a"}, "no use for --strict"},
		{COMMAND_REVIEW, {"a", "b"}, "'b' is one argument too many"},
		{COMMAND_REVIEW, {"--github", "--json"}, "both want standard output"},
		{COMMAND_DOCTOR, {"x"}, "doctor takes no argument: 'x'"},
		{COMMAND_BATCH, {"jobs"}, "-o says where the results"},
		{COMMAND_WORK, {"x"}, "'x' is one word too many"},
		{COMMAND_RESULTS, {"--store", "s"}, "-o names the file of results"},
		{COMMAND_STATUS, {NULL}, "--store says where the jobs are"},
		{COMMAND_MERGE, {"a"}, "merge needs -o OUT"},
		{COMMAND_TRACE, {"a", "b"}, "trace needs one FILE"},
		{COMMAND_TOP, {NULL}, "top needs one FILE"},
		{COMMAND_SERVE, {NULL}, "say where clients are"},
	};

	(void)state;
	setenv("HOME", directory, 1);
	unsetenv("XDG_CONFIG_HOME");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *name = command_table[cases[i].command].name, *text;
		char *argv[4] = {(char *)name};
		auto_free char *advice = xasprintf("\nusage: rlmd %s ", name);
		int argc = 1;

		for (; cases[i].arguments[argc - 1]; argc++)
			argv[argc] = (char *)cases[i].arguments[argc - 1];
		told_begin(&told);
		assert_int_equal(session_command(cases[i].command, argc, argv), 2);
		text = told_end(&told);
		if (!strstr(text, cases[i].wrong) || !strstr(text, advice))
			fail_msg("%s: %s", name, text);
	}
}

/* --- waiting ------------------------------------------------------------------------- */

static void on_leave(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	(void)owner;
	session_leave(&session);
}

static void count_interrupt(void *owner)
{
	++*(int *)owner;
}

static void test_wait(void **state)
{
	int interrupts = 0;
	const struct session_work work = {.interrupt = count_interrupt, .owner = &interrupts};
	struct event_base *base = session.base = loop_new();
	struct event *end = loop_event(base, -1, 0, on_leave, NULL);
	struct rlmd_error err;

	(void)state;
	loop_post(end);
	assert_true(session_wait(&session, &work, &err));
	assert_int_equal(interrupts, 0);
	session.over = false;
	event_free(take_pointer(&session.interrupted));
	error_set(&session.broken, RLMD_ERROR_INTERNAL, "the output is gone");
	loop_post(end); /* is not waited for: nobody reads what comes of it */
	assert_false(session_wait(&session, &work, &err));
	assert_string_equal(err.text, "the output is gone");
	event_free(end);
	session_close(&session);
	event_base_free(base);
}

/* In a child, as signals cannot be taken back. Each step that fails has its number. */
static int interrupted(void)
{
	int interrupts = 0;
	const struct session_work work = {.interrupt = count_interrupt, .owner = &interrupts};
	struct rlmd_error err;

	signal(SIGTERM, SIG_DFL);
	interrupt_install();
	session.base = loop_new();
	if (!session_check_signals(&session, &err))
		return 1;
	raise(SIGTERM);
	if (session_check_signals(&session, &err) || err.kind != RLMD_ERROR_CANCELLED)
		return 2;
	raise(SIGTERM); /* said twice, it does not wait for the work's end */
	if (session_wait(&session, &work, &err) || err.kind != RLMD_ERROR_CANCELLED)
		return 3;
	return session.signal == SIGTERM ? 0 : 4;
}

static void test_interrupted(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	assert_true(child >= 0);
	if (!child)
		child_exit(interrupted());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_notes, enter, leave),
		cmocka_unit_test_setup_teardown(test_no_result, enter, leave),
		cmocka_unit_test_setup_teardown(test_forms_exclude_each_other, enter, leave),
		cmocka_unit_test_setup_teardown(test_time, enter, leave),
		cmocka_unit_test_setup_teardown(test_status, enter, leave),
		cmocka_unit_test_setup_teardown(test_unreachable, enter, leave),
		cmocka_unit_test_setup_teardown(test_full_disk, enter, leave),
		cmocka_unit_test_setup_teardown(test_wait, enter, leave),
		cmocka_unit_test_setup_teardown(test_interrupted, enter, leave),
		cmocka_unit_test_setup_teardown(test_command_lines_that_make_no_sense, enter,
						leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
