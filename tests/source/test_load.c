/* rlmd/context.h: inputs as a program that uses the library has them, waited for and on its loop.
 */
#include <rlmd/context.h>

#include <event2/event.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "threads.h"

static char directory[64];
static int home, standard_input;

static int enter(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/test_load.XXXXXX");
	home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	standard_input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	return !mkdtemp(directory) || chdir(directory);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static int leave(void **state)
{
	(void)state;
	if (fchdir(home) || nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS))
		return 1;
	close(home);
	dup2(standard_input, STDIN_FILENO);
	close(standard_input);
	return 0;
}

static void put(const char *path, const char *content)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(content, file);
	fclose(file);
}

/* A pipe as standard input; returns the end to write to. */
static int make_standard_input(void)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
	close(ends[0]);
	return ends[1];
}

static void assert_input(const struct rlmd_context *context, size_t index, const char *name,
			 const char *content)
{
	struct rlmd_context_input input = {.size = sizeof input};

	assert_true(rlmd_context_get_input(context, index, &input));
	assert_string_equal(input.name, name);
	assert_int_equal(input.content.size, strlen(content));
	assert_memory_equal(input.content.bytes, content, strlen(content));
}

static void assert_file(const struct rlmd_context *context, size_t index, const char *path,
			const char *text)
{
	struct rlmd_context_file file = {.size = sizeof file};

	assert_true(rlmd_context_get_file(context, 0, index, &file));
	assert_string_equal(file.path, path);
	assert_int_equal(file.text.size, strlen(text));
	assert_memory_equal(file.text.bytes, text, strlen(text));
	assert_null(file.status);
}

static void test_text(void **state)
{
	struct rlmd_context_input input = {.size = sizeof input};
	struct rlmd_context *context = rlmd_context_from_text(
		"notes", (struct rlmd_text){"# \xc3\xa4\n\xff", 6}, NULL);

	(void)state;
	assert_non_null(context);
	assert_int_equal(rlmd_context_count(context), 1);
	assert_true(rlmd_context_get_input(context, 0, &input));
	assert_string_equal(input.name, "notes");
	assert_string_equal(input.type, "markdown");
	assert_int_equal(input.characters, 5);
	assert_int_equal(input.invalid_bytes, 1);
	assert_true(input.tokens > 0);
	assert_int_equal(input.files, 0);
	assert_null(input.left_out);
	assert_ptr_equal(rlmd_context_ref(context), context);
	rlmd_context_unref(context);
	assert_input(context, 0, "notes", "# \xc3\xa4\n\xff");
	assert_null(rlmd_context_note(context, 0));
	rlmd_context_unref(context);
}

/* Of a later version, which asks for something that this one would silently leave undone. */
struct later {
	struct rlmd_context_options options;
	int64_t more;
};

static void test_options(void **state)
{
	const char *const sources[] = {"one"};
	struct later later = {.options = {.size = sizeof later}};
	struct rlmd_error err = {0};

	(void)state;
	put("one", "1");
	later.options.timeout_ms = INT64_MAX;
	rlmd_context_unref(rlmd_context_load(sources, 1, &later.options, &err));
	assert_int_equal(err.kind, RLMD_ERROR_NONE);
	later.more = 1;
	assert_null(rlmd_context_load(sources, 1, &later.options, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(err.text, "rlmd_context_options asks for something"));
}

static void test_bad_arguments(void **state)
{
	struct rlmd_context_input input = {.size = 0};
	struct rlmd_context_options unsized = {.size = 0};
	struct rlmd_context *context = rlmd_context_from_text(NULL, rlmd_text_of("x"), NULL);
	const char *const nobody[] = {NULL};
	struct rlmd_error err = {0};

	(void)state;
	assert_false(rlmd_context_get_input(context, 0, &input));
	input.size = sizeof input;
	assert_false(rlmd_context_get_input(context, 1, &input));
	assert_false(rlmd_context_get_input(NULL, 0, &input));
	assert_false(rlmd_context_get_input(context, 0, NULL));
	assert_null(rlmd_context_load(nobody, 1, NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_null(rlmd_context_load(NULL, 1, NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	err.kind = RLMD_ERROR_NONE;
	assert_null(rlmd_context_load(NULL, 0, &unsized, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_null(rlmd_context_load_start(NULL, NULL, 0, NULL, NULL, NULL, &err));
	assert_null(rlmd_context_from_text("for", rlmd_text_of(""), &err));
	assert_non_null(strstr(err.text, "a keyword of Python"));
	assert_null(rlmd_context_from_text("a b", rlmd_text_of(""), &err));
	assert_null(rlmd_context_from_text("a", (struct rlmd_text){NULL, 1}, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	rlmd_context_unref(context);
	rlmd_context_unref(NULL);
	rlmd_context_load_cancel(NULL);
}

/* Each file's own bytes, whatever stands before them; and none of a text that is no files. */
static void test_places(void **state)
{
	const char *const sources[] = {"tree", "two", "text=two"};
	struct rlmd_context_file file = {.size = sizeof file};
	struct rlmd_context *context;

	(void)state;
	assert_int_equal(mkdir("tree", 0700), 0);
	put("tree/a\n\xff", "\xc3\xa4\xff"); /* of which the characters are others than the bytes */
	put("tree/b", "");
	put("tree/c", "no line feed");
	put("two", "2\n");
	context = rlmd_context_load(sources, 3, NULL, NULL);
	assert_non_null(context);
	assert_file(context, 0, "tree/a\\n\\xff", "\xc3\xa4\xff");
	assert_file(context, 1, "tree/b", "");
	assert_file(context, 2, "tree/c", "no line feed");
	assert_file(context, 3, "two", "2\n");
	assert_false(rlmd_context_get_file(context, 0, 4, &file));
	assert_false(rlmd_context_get_file(context, 1, 0, &file));
	assert_false(rlmd_context_get_file(context, 2, 0, &file));
	assert_false(rlmd_context_get_file(NULL, 0, 0, &file));
	assert_int_equal(rlmd_context_changes(context, 0).size, 0);
	assert_int_equal(rlmd_context_changes(context, 2).size, 0);
	rlmd_context_unref(context);
}

static void test_files(void **state)
{
	const char *const sources[] = {"tree", "more=one"};
	struct rlmd_context_input input = {.size = sizeof input};
	struct rlmd_context *context;

	(void)state;
	assert_int_equal(mkdir("tree", 0700), 0);
	put("tree/a", "first\n");
	put("tree/id_rsa", "-----BEGIN OPENSSH PRIVATE KEY-----\n");
	put("one", "whole");
	context = rlmd_context_load(sources, 2, NULL, NULL);
	assert_non_null(context);
	assert_int_equal(rlmd_context_count(context), 2);
	assert_file(context, 0, "a", "first\n");
	assert_input(context, 0, "context", "===== a =====\nfirst\n");
	assert_input(context, 1, "more", "whole");
	assert_true(rlmd_context_get_input(context, 0, &input));
	assert_int_equal(input.files, 1);
	assert_non_null(strstr(input.left_out, "secret"));
	assert_non_null(strstr(rlmd_context_note(context, 0), "id_rsa"));
	assert_null(rlmd_context_note(context, 1));
	rlmd_context_unref(context);
}

/* --- on a loop ----------------------------------------------------------------------- */

struct story {
	struct event_base *base;
	struct event *beat; /* what else the loop has to do */
	struct rlmd_context_loading *loading;
	struct rlmd_context *context;
	struct rlmd_error err;
	int done, beats, asked, pipe;
	int cancel_at; /* the question about going on that is answered by a cancel */
	int stop_at;   /* likewise, by false */
};

static const struct timeval at_once = {0};

static void on_beat(evutil_socket_t fd, short what, void *owner)
{
	struct story *story = owner;

	(void)fd;
	(void)what;
	story->beats++;
	event_add(story->beat, &at_once);
}

static void on_done(void *owner, struct rlmd_context *context, const struct rlmd_error *err)
{
	struct story *story = owner;

	story->done++;
	story->context = context;
	if (err)
		story->err = *err;
	assert_int_equal(!context, err != NULL);
	event_base_loopbreak(story->base);
}

static bool on_progress(void *owner, size_t bytes, size_t files)
{
	struct story *story = owner;

	(void)bytes;
	(void)files;
	if (++story->asked == story->cancel_at) {
		rlmd_context_load_cancel(story->loading);
		event_base_loopbreak(story->base);
	}
	return story->asked != story->stop_at;
}

static void begin(struct story *story, const char *const *sources, size_t count, int64_t timeout_ms)
{
	const struct rlmd_context_options options = {
		.size = sizeof options,
		.timeout_ms = timeout_ms,
		.progress = on_progress,
		.owner = story,
	};

	story->base = event_base_new();
	story->beat = event_new(story->base, -1, 0, on_beat, story);
	event_add(story->beat, &at_once);
	story->loading = rlmd_context_load_start(story->base, sources, count, &options, on_done,
						 story, &story->err);
	assert_non_null(story->loading);
	assert_int_equal(story->done + story->asked, 0);
}

static void end(struct story *story)
{
	rlmd_context_unref(story->context);
	event_free(story->beat);
	event_base_free(story->base);
}

/* Many files and a large one: whatever else waits for the loop has its turn in between. */
static void test_loop_goes_on(void **state)
{
	const char *const sources[] = {"tree"};
	struct rlmd_context_input input = {.size = sizeof input};
	struct story story = {0};
	static char line[1 << 16];
	FILE *file;

	(void)state;
	assert_int_equal(mkdir("tree", 0700), 0);
	memset(line, 'x', sizeof line - 1);
	file = fopen("tree/large", "we");
	assert_non_null(file);
	for (int i = 0; i < 256; i++)
		fputs(line, file);
	fclose(file);
	for (int i = 0; i < 300; i++) {
		char name[32];

		snprintf(name, sizeof name, "tree/%d", i);
		put(name, "small\n");
	}
	begin(&story, sources, 1, 0);
	event_base_dispatch(story.base);
	assert_int_equal(story.done, 1);
	assert_true(rlmd_context_get_input(story.context, 0, &input));
	assert_int_equal(input.files, 301);
	assert_true(story.beats >= 5);
	end(&story);
}

static void on_write(evutil_socket_t fd, short what, void *owner)
{
	struct story *story = owner;

	(void)fd;
	(void)what;
	assert_int_equal(story->done, 0);
	assert_int_equal(write(story->pipe, "half", 4), 4);
	if (story->beats < 0)
		close(story->pipe);
	story->beats = -1000000;
}

/* Bytes that come later are waited for without the loop's standing still. */
static void test_pipe(void **state)
{
	const char *const sources[] = {"-"};
	struct timeval first = {0, 20000}, second = {0, 60000};
	struct event *events[2];
	struct story story = {0};

	(void)state;
	story.pipe = make_standard_input();
	begin(&story, sources, 1, 0);
	event_del(story.beat);
	for (int i = 0; i < 2; i++) {
		events[i] = evtimer_new(story.base, on_write, &story);
		event_add(events[i], i ? &second : &first);
	}
	event_base_dispatch(story.base);
	assert_int_equal(story.done, 1);
	assert_input(story.context, 0, "context", "halfhalf");
	for (int i = 0; i < 2; i++)
		event_free(events[i]);
	end(&story);
}

static void test_timeout(void **state)
{
	const char *const sources[] = {"-"};
	const struct rlmd_context_options options = {.size = sizeof options, .timeout_ms = 20};
	struct story story = {0};

	(void)state;
	story.pipe = make_standard_input();
	begin(&story, sources, 1, 20);
	event_base_dispatch(story.base);
	assert_int_equal(story.done, 1);
	assert_int_equal(story.err.kind, RLMD_ERROR_BUDGET);
	assert_null(rlmd_context_load(sources, 1, &options, &story.err));
	assert_int_equal(story.err.kind, RLMD_ERROR_BUDGET);
	close(story.pipe);
	end(&story);
}

/* A cancel out of the callback is the last that is heard; false is told as what it is, with the
 * source that is waited for: three steps after the start, of which each turn makes one at least. */
static void test_cancelled(void **state)
{
	const char *const sources[] = {"-"};
	struct story story = {.cancel_at = 2}, stopped = {.stop_at = 5};

	(void)state;
	story.pipe = make_standard_input();
	begin(&story, sources, 1, 0);
	event_base_dispatch(story.base);
	assert_int_equal(story.done, 0);
	event_del(story.beat);
	event_base_dispatch(story.base); /* nothing is left on it */
	assert_int_equal(story.asked, 2);
	end(&story);

	begin(&stopped, sources, 1, 0);
	event_base_dispatch(stopped.base);
	assert_int_equal(stopped.done, 1);
	assert_int_equal(stopped.err.kind, RLMD_ERROR_CANCELLED);
	assert_non_null(strstr(stopped.err.text, "standard input: "));
	close(story.pipe);
	end(&stopped);
}

static void test_missing(void **state)
{
	const char *const sources[] = {"nowhere"};
	struct event_base *base = event_base_new();
	struct rlmd_error err;

	(void)state;
	assert_null(rlmd_context_load_start(base, sources, 1, NULL, on_done, NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	event_base_free(base);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_text),    TEST(test_bad_arguments), TEST(test_places),
		TEST(test_files),   TEST(test_loop_goes_on),  TEST(test_pipe),
		TEST(test_timeout), TEST(test_cancelled),     TEST(test_missing),
		TEST(test_options),
	};

	return cmocka_run_group_tests_name("load", tests, NULL, threads_end);
}
