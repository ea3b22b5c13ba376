/* cli/trace_reader: lines that are written meanwhile. */
#include "cli/trace_reader.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"

#define PATH "trace.jsonl"

/* Somebody who notes what was read, and writes the next of some pieces, where there are some, when
 * all that is there was read. */
struct stage {
	const char *const *pieces; /* up to a NULL */
	char seen[200];
	int fd, most, idle;
};

static struct stage stage;

static bool on_line(void *owner, struct rlmd_text line, const json_t *event)
{
	size_t size = strlen(stage.seen);

	(void)owner;
	snprintf(stage.seen + size, sizeof stage.seen - size, "%s%.*s;", event ? "" : "?",
		 (int)line.size, line.bytes);
	return --stage.most;
}

static bool on_idle(void *owner, struct rlmd_error *err)
{
	(void)owner;
	stage.idle++;
	if (!stage.pieces)
		return true;
	if (!*stage.pieces)
		return error_set(err, RLMD_ERROR_INTERNAL, "no more pieces");
	assert_int_equal(write(stage.fd, *stage.pieces, strlen(*stage.pieces)),
			 strlen(*stage.pieces));
	stage.pieces++;
	return true;
}

static bool on_key(void *owner)
{
	(void)owner;
	return false;
}

static struct trace_reader begin(const char *const *pieces)
{
	stage = (struct stage){.pieces = pieces, .most = -1};
	stage.fd = open(PATH, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	assert_true(stage.fd >= 0);
	return (struct trace_reader){.line = on_line, .idle = on_idle, .key = on_key, .keys = -1};
}

static int end(void **state)
{
	(void)state;
	close(stage.fd);
	return unlink(PATH);
}

/* A line is told once it has ended. A result is the end where nothing stands behind it: one of an
 * earlier run in the same file is none. */
static void test_lines(void **state)
{
	const char *const pieces[] = {"{\"seq\": 0}\n{\"se", "q\": 1}\nbroken\n",
				      "{\"event\": \"result\"}\n{\"seq\": 0}\n",
				      "{\"event\": \"result\"}\n", NULL};
	const struct trace_reader reader = begin(pieces);
	struct rlmd_error err = {0};

	(void)state;
	assert_true(trace_reader_run(&reader, PATH, &err));
	assert_string_equal(stage.seen, "{\"seq\": 0};{\"seq\": 1};?broken;"
					"{\"event\": \"result\"};{\"seq\": 0};"
					"{\"event\": \"result\"};");
	assert_int_equal(stage.idle, 4);
	assert_int_equal(err.kind, RLMD_ERROR_NONE);
}

/* The reader may leave: at a line, when nothing new is there, with a key. */
static void test_leaving(void **state)
{
	const char *const pieces[] = {"{\"seq\": 0}\n{\"seq\": 1}\n", NULL};
	struct trace_reader reader = begin(pieces);
	struct rlmd_error err = {0};
	int keys[2];

	(void)state;
	stage.most = 1;
	assert_false(trace_reader_run(&reader, PATH, &err));
	assert_string_equal(stage.seen, "{\"seq\": 0};");
	assert_int_equal(err.kind, RLMD_ERROR_NONE);
	assert_false(trace_reader_run(&reader, PATH, &err));
	assert_int_equal(err.kind, RLMD_ERROR_INTERNAL);
	err = (struct rlmd_error){0};
	assert_int_equal(pipe(keys), 0);
	assert_int_equal(write(keys[1], "q", 1), 1);
	stage.pieces = NULL;
	reader.keys = keys[0];
	assert_false(trace_reader_run(&reader, PATH, &err));
	assert_int_equal(err.kind, RLMD_ERROR_NONE);
	close(keys[0]);
	close(keys[1]);
}

static void test_nothing_to_read(void **state)
{
	const char *const pieces[] = {NULL};
	const struct trace_reader reader = begin(pieces);
	struct rlmd_error err = {0};

	(void)state;
	assert_false(trace_reader_run(&reader, "missing", &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	assert_non_null(strstr(err.text, "missing"));
}

static void test_beginning(void **state)
{
	json_t *event = json_make("{s:i}", "seq", 0);

	(void)state;
	assert_true(trace_reader_begins(event));
	json_put(event, "seq", json_integer(1));
	assert_false(trace_reader_begins(event));
	assert_false(trace_reader_begins(NULL));
	json_decref(event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_lines, end),
		cmocka_unit_test_teardown(test_leaving, end),
		cmocka_unit_test_teardown(test_nothing_to_read, end),
		cmocka_unit_test(test_beginning),
	};
	char room[] = "/tmp/rlmd-test-XXXXXX";
	int status;

	if (!mkdtemp(room) || chdir(room))
		return 1;
	status = cmocka_run_group_tests_name("trace_reader", tests, NULL, NULL);
	return rmdir(room) ? 1 : status;
}
