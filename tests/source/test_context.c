#include "source/context.h"

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

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "threads.h"

/* Each test runs in a directory of its own, which is empty at first. */
static char *directory;
static int home;

static int enter(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	directory = xasprintf("%s/test_context.XXXXXX", tmp ? tmp : "/tmp");
	home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_non_null(mkdtemp(directory));
	return chdir(directory);
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
	free(directory);
	return 0;
}

static void put(const char *path, const char *bytes, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_true(file_write_fd(fd, text_from(bytes, size), NULL));
	close(fd);
}

/* With what is loaded as the floors above see it. */
static bool context_load(const char *const *sources, size_t count, struct context *ret,
			 struct rlmd_error *err)
{
	struct rlmd_context *context = rlmd_context_load(sources, count, NULL, err);

	if (!context)
		return false;
	*ret = context->context;
	context->context = (struct context){0};
	rlmd_context_unref(context);
	return true;
}

static void put_string(const char *path, const char *string)
{
	put(path, string, strlen(string));
}

static struct context load(const char *const *sources)
{
	struct context context;
	struct rlmd_error err;
	size_t count = 0;

	while (sources[count])
		count++;
	if (!context_load(sources, count, &context, &err))
		fail_msg("%s", err.text);
	return context;
}

static void assert_fails(enum rlmd_error_kind kind, const char *word, const char *const *sources)
{
	struct context context;
	struct rlmd_error err;
	size_t count = 0;

	while (sources[count])
		count++;
	assert_false(context_load(sources, count, &context, &err));
	assert_int_equal(err.kind, kind);
	if (!strstr(err.text, word))
		fail_msg("'%s' is not in '%s'", word, err.text);
}

static void assert_text(const struct context_input *input, const char *bytes, size_t size)
{
	struct rlmd_text text = memfile_text(input->file);

	assert_int_equal(text.size, size);
	assert_memory_equal(text.bytes ? text.bytes : "", bytes, size);
}

static bool noted(const struct context *context, const char *words)
{
	for (size_t i = 0; i < json_array_size(context->notes); i++)
		if (strstr(json_string_value(json_array_get(context->notes, i)), words))
			return true;
	return false;
}

#define SOURCES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* LIB-9: one file is the variable, byte for byte: NUL, invalid UTF-8 and CR included. */
static void test_one_file_is_exact(void **state)
{
	static const char bytes[] = "a\0b\xff\xfe\r\n'\"\\\xf0\x9f\x98\x80";
	struct context context;

	(void)state;
	put("x=y.bin", bytes, sizeof bytes - 1);
	context = load(SOURCES("./x=y.bin"));
	assert_int_equal(context.count, 1);
	assert_string_equal(context.inputs[0].name, "context");
	assert_null(context.inputs[0].files);
	assert_text(&context.inputs[0], bytes, sizeof bytes - 1);
	assert_true(noted(&context, "2 bytes are not UTF-8, in ./x=y.bin; "));
	context_done(&context);
}

/* A file of 0 bytes is a context; one of several chunks arrives whole. */
static void test_any_size(void **state)
{
	size_t size = (size_t)5 << 19;
	auto_free char *bytes = xcalloc(size, 1);
	struct context context;

	(void)state;
	put("empty", "", 0);
	context = load(SOURCES("empty"));
	assert_int_equal(context.count, 1);
	assert_text(&context.inputs[0], "", 0);
	assert_string_equal(context.inputs[0].type, "plain");
	context_done(&context);

	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)(i * 7 % 251);
	put("large", bytes, size);
	context = load(SOURCES("large"));
	assert_text(&context.inputs[0], bytes, size);
	context_done(&context);
}

/* No source, no variable. */
static void test_nothing(void **state)
{
	struct context context;

	(void)state;
	assert_true(context_load(NULL, 0, &context, NULL));
	assert_int_equal(context.count, 0);
	context_done(&context);
}

/* The index of a concatenation gives back each file's text, in characters, not bytes. */
static void assert_index(const struct context_input *input, size_t place, const char *path,
			 const char *text)
{
	struct file_entry entry = file_index_get(input->files, place);
	struct rlmd_text all = memfile_text(input->file);
	struct text_scan before = {0}, scan = {0};

	assert_true(text_equal(entry.path, path));
	assert_int_equal(entry.bytes, strlen(text));
	assert_memory_equal(all.bytes + entry.first_byte, text, strlen(text));
	text_scan_feed(&before, text_from(all.bytes, entry.first_byte));
	text_scan_end(&before);
	assert_int_equal(entry.first_character, before.characters);
	text_scan_feed(&scan, text_of(text));
	text_scan_end(&scan);
	assert_int_equal(entry.characters, scan.characters);
	assert_int_equal(entry.tokens, text_scan_tokens(&scan));
	assert_int_equal(entry.highest, scan.highest);
}

static const char *line_of(int number)
{
	static const char *const lines[] = {
		"static int value = sum(first, last); /* of all */\n",
		"The quick brown fox jumps over the lazy dog, and over the moon.\n",
		"\tif (!file)\n\t\treturn NULL;\n\n\n",
		"2026-11-28 12:00:01 host-7 service[4711]: took 1.25 ms\n",
		"\xd1\x8d\xd1\x82\xd0\xbe \xe4\xb8\xad\xe6\x96\x87 12\n",
	};

	return lines[number % (sizeof lines / sizeof *lines)];
}

/* Of the files of a large tree samples tell how many tokens they are: as many, all together, as the
 * whole of each would. */
static void test_large_tree(void **state)
{
	enum { FILES = 700, LINES = 1000 };
	auto_evbuffer struct evbuffer *text = buffer_new();
	struct context context;
	int64_t exact = 0, all = 0;

	(void)state;
	assert_int_equal(mkdir("tree", 0755), 0);
	for (int i = 0; i < FILES; i++) {
		auto_free char *path = xasprintf("tree/%d", i);

		for (int line = 0; line < i * 7 % LINES; line++)
			buffer_add_printf(text, "%s", line_of(i / 100 + line * line));
		put(path, text_in(text).bytes, text_in(text).size);
		exact += text_tokens(text_in(text));
		evbuffer_drain(text, evbuffer_get_length(text));
	}
	assert_true(context_load((const char *[]){"tree"}, 1, &context, NULL));
	assert_true(memfile_size(context.inputs[0].file) > 2 * TOKEN_EXACT);
	for (size_t i = 0; i < file_index_count(context.inputs[0].files); i++)
		all += file_index_get(context.inputs[0].files, i).tokens;
	assert_in_range(all, exact * 95 / 100, exact * 105 / 100);
	assert_in_range(text_scan_tokens(memfile_scan(context.inputs[0].file)), all, all * 11 / 10);
	context_done(&context);
}

/* Several sources are one text, each under its header; a missing line feed belongs to no file. */
static void test_several_are_put_together(void **state)
{
	static const char expected[] = "===== ä.txt =====\nä\xe2\x82\xac\n===== b =====\nb\n"
				       "===== d/c =====\nc";
	struct context context;

	(void)state;
	put_string("ä.txt", "ä\xe2\x82\xac");
	put_string("b", "b\n");
	mkdir("d", 0755);
	put_string("d/c", "c");
	context = load(SOURCES("ä.txt", "b", "d/"));
	assert_int_equal(context.count, 1);
	assert_text(&context.inputs[0], expected, sizeof expected - 1);
	assert_int_equal(file_index_count(context.inputs[0].files), 3);
	assert_index(&context.inputs[0], 0, "ä.txt", "ä\xe2\x82\xac");
	assert_index(&context.inputs[0], 1, "b", "b\n");
	assert_index(&context.inputs[0], 2, "d/c", "c");
	context_done(&context);
}

/* A directory in the order of whole paths, relative to itself, without .git and binaries. */
static void test_directory(void **state)
{
	static const char expected[] = "===== a-b =====\n1\n===== a/z =====\n2\n===== a0 =====\n3\n"
				       "===== n\\nl =====\n4\n";
	struct context context;

	(void)state;
	mkdir("t", 0755);
	mkdir("t/a", 0755);
	mkdir("t/.git", 0755);
	put_string("t/.git/HEAD", "ref");
	put_string("t/a-b", "1\n");
	put_string("t/a/z", "2\n");
	put_string("t/a0", "3\n");
	put_string("t/n\nl", "4\n");
	put("t/binary", "x\0y", 3);
	context = load(SOURCES("t"));
	assert_text(&context.inputs[0], expected, sizeof expected - 1);
	assert_int_equal(file_index_count(context.inputs[0].files), 4);
	assert_int_equal(json_array_size(context.notes), 1);
	assert_true(noted(&context, "t: skipped 1 binary file: binary"));
	context_done(&context);
}

/* Links, FIFOs and what cannot be read are left out, counted, and named, five at most. */
static void test_directory_skips(void **state)
{
	struct context context;
	char path[32];

	(void)state;
	mkdir("t", 0755);
	put_string("t/inside", "x\n");
	assert_int_equal(symlink("inside", "t/stays"), 0);
	assert_int_equal(symlink("/etc/passwd", "t/leaves"), 0);
	assert_int_equal(symlink("loop", "t/loop"), 0);
	assert_int_equal(symlink(".", "t/self"), 0);
	for (int i = 0; i < 7; i++) {
		snprintf(path, sizeof path, "t/fifo%d", i);
		assert_int_equal(mkfifo(path, 0644), 0);
	}
	context = load(SOURCES("t"));
	assert_int_equal(file_index_count(context.inputs[0].files), 1);
	assert_true(noted(&context, "skipped 4 symbolic links: leaves, loop, self, stays"));
	assert_true(noted(&context, "skipped 7 sockets, devices or FIFOs: fifo0, fifo1, fifo2, "
				    "fifo3, fifo4, ..."));
	assert_int_equal(json_array_size(context.notes), 2);
	context_done(&context);
}

/* LIB-11: a name makes a variable of its own; `context` comes first. */
static void test_names(void **state)
{
	struct context context;

	(void)state;
	put_string("a", "A");
	put_string("b", "B");
	context = load(SOURCES("notes=a", "context=b"));
	assert_int_equal(context.count, 2);
	assert_string_equal(context.inputs[0].name, "context");
	assert_text(&context.inputs[0], "B", 1);
	assert_string_equal(context.inputs[1].name, "notes");
	assert_text(&context.inputs[1], "A", 1);
	context_done(&context);
	context = load(SOURCES("notes=a", "b"));
	assert_string_equal(context.inputs[0].name, "context");
	assert_null(context.inputs[0].files);
	context_done(&context);
}

/* Names that Python or the worker need are refused, and so is one name for two inputs. */
static void test_bad_names(void **state)
{
	(void)state;
	put_string("a", "A");
	assert_fails(RLMD_ERROR_USAGE, "keyword", SOURCES("class=a"));
	assert_fails(RLMD_ERROR_USAGE, "llm_query", SOURCES("llm_query=a"));
	assert_fails(RLMD_ERROR_USAGE, "__name__", SOURCES("__name__=a"));
	assert_fails(RLMD_ERROR_USAGE, "two contexts", SOURCES("x=a", "x=a"));
	assert_fails(RLMD_ERROR_USAGE, "two contexts", SOURCES("a", "context=a"));
	assert_fails(RLMD_ERROR_USAGE, "only once", SOURCES("-", "x=-"));
	assert_fails(RLMD_ERROR_USAGE, "names no file", SOURCES("x="));
	assert_fails(RLMD_ERROR_USAGE, "names no file", SOURCES(""));
}

/* A source that is missing, unreadable or no file is named, and never waited for. */
static void test_unreadable(void **state)
{
	(void)state;
	assert_fails(RLMD_ERROR_INPUT, "nowhere/x", SOURCES("nowhere/x"));
	assert_fails(RLMD_ERROR_INPUT, "9=x", SOURCES("9=x"));
	mkfifo("fifo", 0644);
	assert_fails(RLMD_ERROR_INPUT, "fifo", SOURCES("fifo"));
	assert_fails(RLMD_ERROR_INPUT, "/dev/zero", SOURCES("x=/dev/zero"));
	put_string("secret", "x");
	assert_int_equal(chmod("secret", 0), 0);
	if (geteuid())
		assert_fails(RLMD_ERROR_INPUT, "secret", SOURCES("secret"));
}

/* A file that claims more than a variable can hold is refused before it is read. */
static void test_too_large(void **state)
{
	(void)state;
	put_string("huge", "x");
	assert_int_equal(truncate("huge", ((off_t)4 << 30) + 1), 0);
	assert_fails(RLMD_ERROR_INPUT, "larger than", SOURCES("huge"));
}

/* LIB-8: the hints at the type of content. */
static void test_types(void **state)
{
	static const struct {
		const char *text, *type;
	} cases[] = {
		{"", "plain"},
		{"Just words.\nimportant words.\n", "plain"},
		{" {\"a\": [1, 2]} \n", "json"},
		{"[1, 2]", "json"},
		{"{not json}", "plain"},
		{"[unclosed", "plain"},
		{"x\nimport os\n", "code"},
		{"from os.path import join\n", "code"},
		{"from here to there\n", "plain"},
		{"def f():\n\tpass\n", "code"},
		{"package main\n", "code"},
		{"# Title\n\ntext\n", "markdown"},
		{"#hashtag\n", "plain"},
		{"####### seven\n", "plain"},
		{"list:\n  - one\n  - two\n", "markdown"},
		{"# Title\n\nimport x\n", "code"},
		{"-----\n", "plain"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (strcmp(context_type(text_of(cases[i].text)), cases[i].type))
			fail_msg("'%s' is no %s", cases[i].text, cases[i].type);
}

/* Beyond what is worth parsing, the ends decide. */
static void test_type_of_large_json(void **state)
{
	size_t size = (size_t)3 << 20;
	auto_free char *bytes = xcalloc(size, 1);

	(void)state;
	memset(bytes, ' ', size);
	bytes[0] = '[';
	bytes[size - 2] = ']';
	bytes[size - 1] = '\n';
	assert_string_equal(context_type(text_from(bytes, size)), "json");
	bytes[size - 2] = '}';
	assert_string_equal(context_type(text_from(bytes, size)), "plain");
}

/* A text of ours becomes `context`, as sub-runs get it. */
static void test_from_text(void **state)
{
	struct context context;

	(void)state;
	assert_true(context_from_text(text_of("# Hi\n"), &context, NULL));
	assert_int_equal(context.count, 1);
	assert_string_equal(context.inputs[0].name, "context");
	assert_string_equal(context.inputs[0].type, "markdown");
	assert_text(&context.inputs[0], "# Hi\n", 5);
	context_done(&context);
	context_done(&context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_file_is_exact, enter, leave),
		cmocka_unit_test_setup_teardown(test_any_size, enter, leave),
		cmocka_unit_test_setup_teardown(test_nothing, enter, leave),
		cmocka_unit_test_setup_teardown(test_several_are_put_together, enter, leave),
		cmocka_unit_test_setup_teardown(test_directory, enter, leave),
		cmocka_unit_test_setup_teardown(test_directory_skips, enter, leave),
		cmocka_unit_test_setup_teardown(test_names, enter, leave),
		cmocka_unit_test_setup_teardown(test_bad_names, enter, leave),
		cmocka_unit_test_setup_teardown(test_unreadable, enter, leave),
		cmocka_unit_test_setup_teardown(test_too_large, enter, leave),
		cmocka_unit_test_setup_teardown(test_large_tree, enter, leave),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_type_of_large_json),
		cmocka_unit_test(test_from_text),
	};

	alloc_install();
	return cmocka_run_group_tests(tests, NULL, threads_end);
}
