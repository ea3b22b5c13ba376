#include "cli/output.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/tell.h"
#include "directory.h"

static bool put_event(struct output *output, const json_t *event, struct rlmd_error *err)
{
	auto_free char *line = json_to_string(event);

	return output_event(output, text_of(line), err);
}

static int enter(void **state)
{
	(void)state;
	return directory_enter();
}

/* How many entries the directory has; with `removing` they go. */
static size_t entries(bool removing)
{
	DIR *dir = opendir(".");
	struct dirent *entry;
	size_t count = 0;

	while ((entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		count++;
		if (removing)
			unlink(entry->d_name);
	}
	closedir(dir);
	return count;
}

static int leave(void **state)
{
	(void)state;
	entries(true);
	return directory_leave((const char *const[]){NULL});
}

/* In place of the C library's: a wait is over at once, and counted. */
int waits; /* not static: glibc declares ppoll() inline where it is fortified */

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	struct timespec none = {0};
	int ready = (int)syscall(SYS_ppoll, fds, count, &none, mask, (size_t)(NSIG / 8));

	waits += !ready && timeout && (timeout->tv_sec || timeout->tv_nsec);
	return ready;
}

/* A FIFO with a reader that takes nothing more; gives the reader. */
static int full_fifo(const char *path)
{
	static const char bytes[4096];
	int reader, writer;

	assert_int_equal(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	writer = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(reader >= 0 && writer >= 0);
	while (write(writer, bytes, sizeof bytes) > 0)
		;
	close(writer);
	return reader;
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static json_t *result(void)
{
	return json_pack("{s:s, s:b, s:s}", "event", "result", "success", 1, "output", "42");
}

/* -o: nothing is there before the end, then all of it, with the usual mode; raw bytes. */
static void test_answer_appears_at_once(void **state)
{
	struct output *output = output_new(OUTPUT_ANSWER, "out", NULL, NULL);
	json_t *object = result();
	struct stat st;

	(void)state;
	assert_non_null(output);
	assert_int_equal(access("out", F_OK), -1);
	assert_true(output_result(output, object, text_of("a\033[31m\n"), NULL));
	output_free(output);
	assert_content("out", "a\033[31m\n\n");
	assert_int_equal(stat("out", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(entries(false), 1);
	json_decref(object);
}

/* Without an answer an older file stays, and nothing else is left. */
static void test_no_answer_no_file(void **state)
{
	struct output *output;
	json_t *object = result();

	(void)state;
	assert_true(file_write("out", text_of("older"), NULL));
	output = output_new(OUTPUT_ANSWER, "out", NULL, NULL);
	assert_true(output_result(output, object, (struct rlmd_text){0}, NULL));
	output_free(output);
	output = output_new(OUTPUT_JSON, "out", NULL, NULL);
	output_free(output);
	assert_content("out", "older");
	assert_int_equal(entries(false), 1);
	json_decref(object);
}

/* --json is the object without the event's name; an older file is replaced. */
static void test_json(void **state)
{
	struct output *output;
	json_t *object = result();

	(void)state;
	assert_true(file_write("out", text_of("older"), NULL));
	output = output_new(OUTPUT_JSON, "out", NULL, NULL);
	assert_true(put_event(output, object, NULL));
	assert_true(output_result(output, object, text_of("42"), NULL));
	output_free(output);
	assert_content("out", "{\"success\":true,\"output\":\"42\"}\n");
	json_decref(object);
}

/* --jsonl ends with the result, once, whether or not the engine came to tell it. */
static void test_jsonl(void **state)
{
	json_t *object = result();
	json_t *event = json_pack("{s:s}", "event", "run");

	(void)state;
	for (int told = 0; told < 2; told++) {
		struct output *output = output_new(OUTPUT_JSONL, "out", NULL, NULL);

		assert_true(put_event(output, event, NULL));
		if (told)
			assert_true(put_event(output, object, NULL));
		assert_true(output_result(output, object, text_of("42"), NULL));
		output_free(output);
		assert_content("out", "{\"event\":\"run\"}\n{\"event\":\"result\",\"success\":true,"
				      "\"output\":\"42\"}\n");
	}
	json_decref(object);
	json_decref(event);
}

/* The trace is there line by line, for its owner only, after what stood in the file. */
static void test_trace(void **state)
{
	json_t *event = json_pack("{s:s}", "event", "run");
	struct output *output;
	struct stat st;

	(void)state;
	output = output_new(OUTPUT_ANSWER, NULL, "trace", NULL);
	assert_true(put_event(output, event, NULL));
	assert_content("trace", "{\"event\":\"run\"}\n");
	output_free(output);
	output = output_new(OUTPUT_ANSWER, NULL, "trace", NULL);
	assert_true(put_event(output, event, NULL));
	output_free(output);
	assert_content("trace", "{\"event\":\"run\"}\n{\"event\":\"run\"}\n");
	assert_int_equal(stat("trace", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	json_decref(event);
}

/* A file with the trace is for its owner only; an older file's mode is kept, wide or narrow. */
static void test_modes(void **state)
{
	static const enum output_form forms[] = {OUTPUT_ANSWER, OUTPUT_JSON, OUTPUT_JSONL};
	static const mode_t modes[] = {0644, 0600, 0600}, older[] = {0600, 0644, 0640};
	json_t *object = result();

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct output *output = output_new(forms[i], "out", NULL, NULL);

		assert_true(output_result(output, object, text_of("42"), NULL));
		output_free(output);
		assert_int_equal(mode_of("out"), modes[i]);
		assert_int_equal(chmod("out", older[i]), 0);
		output = output_new(forms[i], "out", NULL, NULL);
		assert_true(output_result(output, object, text_of("42"), NULL));
		output_free(output);
		assert_int_equal(mode_of("out"), older[i]);
		assert_int_equal(unlink("out"), 0);
	}
	json_decref(object);
}

static void assert_no_trace(const char *path, const char *words)
{
	struct rlmd_error err = {0};

	assert_null(output_new(OUTPUT_ANSWER, NULL, path, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	if (!strstr(err.text, words) || !strstr(err.text, path))
		fail_msg("'%s' is not in '%s'", words, err.text);
}

/* No trace into a file that others could have laid there or can change; it stays as it was. */
static void test_untrusted_trace(void **state)
{
	(void)state;
	assert_true(file_write("trace", text_of("cut"), NULL));
	assert_int_equal(symlink("trace", "link"), 0);
	assert_no_trace("link", "symbolic link");
	assert_int_equal(symlink("nothing", "loose"), 0);
	assert_no_trace("loose", "No such file");
	assert_int_equal(chmod("trace", 0620), 0);
	assert_no_trace("trace", "chmod go-w trace");
	assert_int_equal(chmod("trace", 0602), 0);
	assert_no_trace("trace", "chmod go-w trace");
	assert_content("trace", "cut");
	assert_int_equal(access("nothing", F_OK), -1);
}

/* A device and a descriptor that a shell opened are named by links, and are taken as they are. */
static void test_named_trace(void **state)
{
	int fd = open("log", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	auto_free char *path = xasprintf("/dev/fd/%d", fd);
	json_t *event = json_pack("{s:s}", "event", "run");
	struct output *output;

	(void)state;
	assert_int_equal(chmod("log", 0666), 0);
	output = output_new(OUTPUT_ANSWER, NULL, path, NULL);
	assert_non_null(output);
	assert_true(put_event(output, event, NULL));
	output_free(output);
	assert_content("log", "{\"event\":\"run\"}\n");
	close(fd);
	assert_int_equal(symlink("/dev/null", "null"), 0);
	output = output_new(OUTPUT_ANSWER, NULL, "null", NULL);
	assert_non_null(output);
	output_free(output);
	json_decref(event);
}

/* A reader of events that stops must not stop the run for ever: half a minute, then it goes on
 * without a trace, once, and ends where the events were the output. */
static void test_stalled_reader(void **state)
{
	json_t *event = json_pack("{s:s}", "event", "run");
	int reader = full_fifo("fifo");
	struct output *output;
	struct rlmd_error err = {0};

	(void)state;
	tell_setup(RLMD_LOG_ERROR, LOG_FORMAT_TEXT, false);
	output = output_new(OUTPUT_ANSWER, NULL, "fifo", NULL);
	waits = 0;
	assert_true(put_event(output, event, NULL));
	assert_int_equal(waits, 30);
	assert_true(put_event(output, event, NULL));
	assert_int_equal(waits, 30);
	output_free(output);

	output = output_new(OUTPUT_JSONL, "fifo", NULL, NULL);
	assert_false(put_event(output, event, &err));
	assert_int_equal(waits, 60);
	assert_int_equal(err.kind, RLMD_ERROR_INTERNAL);
	assert_non_null(strstr(err.text, "nobody read for 30 s"));
	output_free(output);
	close(reader);
	json_decref(event);
}

/* A file that cannot be written is known before the first call. */
static void test_unwritable(void **state)
{
	struct rlmd_error err;

	(void)state;
	assert_null(output_new(OUTPUT_ANSWER, "missing/out", NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(err.text, "missing/out"));
	assert_null(output_new(OUTPUT_ANSWER, ".", NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_null(output_new(OUTPUT_ANSWER, NULL, "missing/trace", &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(err.text, "missing/trace"));
}

/* A full disk: the answer fails, a trace is only warned of. */
static void test_full_disk(void **state)
{
	json_t *object = result();
	struct output *output = output_new(OUTPUT_ANSWER, "/dev/full", "/dev/full", NULL);
	struct rlmd_error err;

	(void)state;
	tell_setup(RLMD_LOG_ERROR, LOG_FORMAT_TEXT, false);
	assert_non_null(output);
	assert_true(put_event(output, object, &err));
	assert_true(put_event(output, object, &err));
	assert_false(output_result(output, object, text_of("42"), &err));
	assert_int_equal(err.kind, RLMD_ERROR_INTERNAL);
	assert_non_null(strstr(err.text, "/dev/full"));
	assert_false(output_reader_gone(output));
	output_free(output);
	json_decref(object);
}

/* A reader that has gone is told from other failures. */
static void test_reader_gone(void **state)
{
	int old = dup(STDOUT_FILENO), ends[2];
	json_t *object = result();
	struct output *output;
	bool written, gone;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	fflush(stdout);
	dup2(ends[1], STDOUT_FILENO);
	output = output_new(OUTPUT_JSONL, NULL, NULL, NULL);
	written = put_event(output, object, NULL);
	gone = output_reader_gone(output);
	output_free(output);
	dup2(old, STDOUT_FILENO);
	close(old);
	close(ends[1]);
	assert_false(written);
	assert_true(gone);
	json_decref(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answer_appears_at_once, enter, leave),
		cmocka_unit_test_setup_teardown(test_no_answer_no_file, enter, leave),
		cmocka_unit_test_setup_teardown(test_json, enter, leave),
		cmocka_unit_test_setup_teardown(test_jsonl, enter, leave),
		cmocka_unit_test_setup_teardown(test_trace, enter, leave),
		cmocka_unit_test_setup_teardown(test_modes, enter, leave),
		cmocka_unit_test_setup_teardown(test_untrusted_trace, enter, leave),
		cmocka_unit_test_setup_teardown(test_named_trace, enter, leave),
		cmocka_unit_test_setup_teardown(test_stalled_reader, enter, leave),
		cmocka_unit_test_setup_teardown(test_unwritable, enter, leave),
		cmocka_unit_test_setup_teardown(test_full_disk, enter, leave),
		cmocka_unit_test(test_reader_gone),
	};

	umask(022);
	alloc_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
