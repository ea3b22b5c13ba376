/*
 * review/patch: changes that a model might suggest, with numbers that are wrong, are made into
 * patches that git applies, with the file that was meant; and what is dropped, with its reason.
 */
#include "review/patch.h"

#include <event2/buffer.h>
#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "effort.h"
#include "review/anchor.h"

enum { LINES = 30 };

static uint32_t dice = 1;

static size_t roll(size_t sides)
{
	dice = dice * 1664525 + 1013904223;
	return (dice >> 8) % sides;
}

static size_t work_before; /* of other findings */

/* `given` checked against one file, new; NULL: it was dropped for `reason`. */
static char *checked(const char *path, const char *text, const char *quote, const char *given,
		     const char *reason)
{
	struct finding finding = {.path = xstrdup("a.c"), .quote = xstrdup(quote)};
	struct code code = {0};
	char *patch;

	finding.patch = xstrdup(given);
	code_add(&code, text_of(path), text_of(text));
	code_seal(&code);
	anchor_find(&code, &finding);
	code.work += work_before;
	patch_check(&code, &finding);
	patch = take_pointer(&finding.patch);
	if (reason && (patch || !finding.no_patch || !strstr(finding.no_patch, reason)))
		fail_msg("of %s: %s%s, not for '%s'", given, patch ? "not dropped" : "dropped for ",
			 finding.no_patch ? finding.no_patch : "", reason);
	if (!reason && !patch)
		fail_msg("of %s: dropped for %s", given, finding.no_patch);
	assert_true(!patch == !!finding.no_patch);
	finding_done(&finding);
	code_done(&code);
	return patch;
}

#define TEXT "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"
#define HEAD "diff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n"

static void test_rewritten(void **state)
{
	static const struct {
		const char *text, *given, *wanted;
	} table[] = {
		{TEXT, "--- a/a.c\n+++ b/a.c\n@@ -90,7 +1,2 @@\n-five\n+FIVE\n",
		 HEAD "@@ -2,7 +2,7 @@\n two\n three\n four\n-five\n+FIVE\n six\n seven\n eight\n"},
		{TEXT, "@@ @@\n four\n+more\n+lines\n five\n", /* no header, no numbers */
		 HEAD "@@ -2,6 +2,8 @@\n two\n three\n four\n+more\n+lines\n five\n six\n seven\n"},
		{TEXT, "@@ -1 +1 @@\n-one\n@@ -9 +9 @@\n-nine\n+NINE",
		 HEAD "@@ -1,4 +1,3 @@\n-one\n two\n three\n four\n"
		      "@@ -6,4 +5,4 @@\n six\n seven\n eight\n-nine\n+NINE\n"},
		{TEXT,
		 "@@ -1 +1 @@\n-one\n+ONE\n@@ -7 +7 @@\n-seven\n+SEVEN\n", /* one hunk of two */
		 HEAD
		 "@@ -1,9 +1,9 @@\n-one\n+ONE\n two\n three\n four\n five\n six\n-seven\n+SEVEN\n"
		 " eight\n nine\n"},
		{"a\nb", "@@ @@\n a\n-b\n+c\n",
		 HEAD "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n"},
		{"a\nb", "@@ @@\n b\n+c\n",
		 HEAD "@@ -1,2 +1,3 @@\n a\n-b\n\\ No newline at end of file\n+b\n+c\n"},
		{"a\nb", "@@ @@\n-a\n+A\n",
		 HEAD "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n"},
		{"a\r\nb\r\n", "@@ @@\n a\n-b\n+c\n", HEAD "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n"},
		{"a\n", "@@ @@\n-a\n", HEAD "@@ -1,1 +0,0 @@\n-a\n"},
		{"--- a\nb\n", "@@ @@\n---- a\n+-- b\n",
		 HEAD "@@ -1,2 +1,2 @@\n---- a\n+-- b\n b\n"},
		{"a \n\nb\n", "@@ @@\n a\n\n-b\n+c\n\n\n", /* an empty line without its mark */
		 HEAD "@@ -1,3 +1,3 @@\n a \n \n-b\n+c\n"},
		{"x\na\nx\na\n", "@@ -4 +4 @@\n-a\n+b\n",
		 HEAD "@@ -1,4 +1,4 @@\n x\n a\n x\n-a\n+b\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		auto_free char *patch = checked("a.c", table[i].text, "nowhere", table[i].given,
						NULL);

		assert_string_equal(patch, table[i].wanted);
	}
}

/* Of several places the one where the finding is. */
static void test_nearest(void **state)
{
	auto_free char *patch = checked("a.c", "a\nx\na\ny\na\n", "x\na", "@@ -1 +1 @@\n-a\n+b\n",
					NULL);

	(void)state;
	assert_non_null(strstr(patch, " x\n-a\n+b\n y\n"));
}

static void test_dropped(void **state)
{
	static const char *const table[][2] = {
		{"--- a/b.c\n+++ b/b.c\n@@ @@\n-one\n", "not loaded"},
		{"--- a/../a.c\n+++ b/../a.c\n@@ @@\n-one\n", "not loaded"},
		{"--- /etc/passwd\n+++ /etc/passwd\n@@ @@\n-one\n", "not loaded"},
		{"--- /dev/null\n+++ b/a.c\n@@ @@\n+one\n", "creates, removes or renames"},
		{"--- a/a.c\n+++ /dev/null\n@@ @@\n-one\n", "creates, removes or renames"},
		{"--- a/a.c\n+++ b/b.c\n@@ @@\n-one\n", "creates, removes or renames"},
		{"diff --git a/a.c b/a.c\nold mode 100644\nnew mode 100755\n",
		 "more than to change"},
		{"diff --git a/a.c b/b.c\nrename from a.c\nrename to b.c\n", "more than to change"},
		{"diff --git a/a.c b/a.c\nGIT binary patch\nliteral 3\n", "more than to change"},
		{"@@ @@\n-twelve\n+13\n", "do not stand in the file"},
		{"@@ @@\n-one\n-three\n+13\n", "do not stand in the file"},
		{"@@ @@\n-five\n+5\n@@ @@\n-two\n+2\n", "do not stand in the file"},
		{"@@ @@\n+new\n", "none to find their place by"},
		{"@@ @@\n-one\n+one\n", "changes nothing"},
		{"@@ @@\n one\n two\n", "changes nothing"},
		{"Replace one by two.", "no unified diff"},
		{"--- a/a.c\n@@ @@\n-one\n", "no unified diff"},
		{"@@ @@\n-one\n+1\nThat is all.\n", "no unified diff"},
		{"@@ @@\n-one\n+\x1b[2J\n", "that nobody sees"},
		{"@@ @@\n-one\n+a\xe2\x80\xae"
		 "b\n",
		 "that nobody sees"},
		{HEAD "@@ @@\n-one\n+1\n" HEAD "@@ @@\n-two\n+2\n", "names a file twice"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		assert_null(checked("a.c", TEXT, "one", table[i][0], table[i][1]));
	assert_null(checked("a\nb.c", TEXT, "one", "--- a/a.c\n+++ b/a.c\n@@ @@\n-one\n",
			    "not loaded"));
	assert_null(checked("a.c", "caf\xe9\none\n", "one", "@@ @@\n-one\n", "not UTF-8"));
	assert_null(checked("a.c", "", "one", "@@ @@\n-one\n", "do not stand in the file"));
}

static void test_names_that_cannot_stand_in_a_patch(void **state)
{
	static const char *const names[] = {"a\"b.c", "a\\b.c", "a\x7f.c"};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		auto_free char *given = xasprintf("--- a/%s\n+++ b/%s\n@@ @@\n-one\n", names[i],
						  names[i]);

		assert_null(checked(names[i], TEXT, "one", given, "cannot stand in a patch"));
	}
}

/* There is an end to what is looked for, and to how many parts a diff may have. */
static void test_too_much(void **state)
{
	auto_evbuffer struct evbuffer *text = evbuffer_new(), *given = evbuffer_new();
	auto_free char *patch = NULL, *lines = NULL, *hunks = NULL;

	(void)state;
	work_before = CODE_WORK_MAX - 3;
	assert_null(checked("a.c", TEXT, "nowhere", "@@ @@\n-nine\n", "too much to look for"));
	work_before = 0;
	for (size_t i = 0; i < PATCH_HUNKS_MAX; i++) {
		evbuffer_add_printf(text, "line %zu\n", i);
		evbuffer_add_printf(given, "@@ @@\n-line %zu\n", i);
	}
	evbuffer_add_printf(text, "last\n");
	lines = xstrndup(text_in(text).bytes, text_in(text).size);
	hunks = xstrndup(text_in(given).bytes, text_in(given).size);
	patch = checked("a.c", lines, "nowhere", hunks, NULL);
	free(take_pointer(&hunks));
	hunks = xasprintf("%.*s@@ @@\n-last\n", (int)text_in(given).size, text_in(given).bytes);
	assert_null(checked("a.c", lines, "nowhere", hunks, "too many parts"));
}

/* --- git ---------------------------------------------------------------------------------- */

static bool run_git(const char *directory, char *const *words)
{
	static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin",
		    config[] = "GIT_CONFIG_NOSYSTEM=1";
	char *const environment[] = {path, config, NULL};
	posix_spawn_file_actions_t actions;
	int status = -1;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addchdir_np(&actions, directory);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	if (!posix_spawnp(&pid, "git", &actions, NULL, words, environment))
		waitpid(pid, &status, 0);
	posix_spawn_file_actions_destroy(&actions);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Few words, so that lines are repeated; some at the end without a line feed. */
static size_t write_lines(const char *lines[static LINES])
{
	static const char *const words[] = {"free(x);", "\tcopy(a, b);", "}", "", "-- a", "++ b"};
	size_t count = 1 + roll(LINES);

	for (size_t i = 0; i < count; i++)
		lines[i] = words[roll(6)];
	return count;
}

static void add_line(struct evbuffer *out, const char *mark, const char *line)
{
	evbuffer_add_printf(out, "%s%s\n", mark, line);
}

/* A text, what is to become of it, and a diff between them that is all in one part. */
static void write_change(struct evbuffer *old, struct evbuffer *new, struct evbuffer *diff)
{
	const char *lines[LINES];
	size_t count = write_lines(lines);

	evbuffer_add_printf(diff, "--- a/some file.c\n+++ b/some file.c\n@@ -%zu,3 +9 @@\n",
			    roll(99));
	for (size_t i = 0; i < count; i++) {
		bool gone = !roll(4);

		add_line(old, "", lines[i]);
		add_line(diff, gone ? "-" : " ", lines[i]);
		if (!gone)
			add_line(new, "", lines[i]);
		if (!roll(4)) {
			add_line(diff, "+", "new line");
			add_line(new, "", "new line");
		}
	}
}

static void put(const char *directory, const char *name, const char *text)
{
	auto_free char *path = xasprintf("%s/%s", directory, name);

	assert_true(file_write(path, text_of(text), NULL));
}

static void assert_text(const char *directory, const char *wanted)
{
	auto_free char *path = xasprintf("%s/some file.c", directory);
	size_t size;
	auto_free char *text = file_read(path, 1 << 20, &size, NULL);

	assert_string_equal(text, wanted);
}

static void try_one(const char *directory)
{
	static char git[] = "git", apply[] = "apply", patch_name[] = "p.diff";
	char *const words[] = {git, apply, patch_name, NULL};
	auto_evbuffer struct evbuffer *old = evbuffer_new(), *new = evbuffer_new();
	auto_evbuffer struct evbuffer *diff = evbuffer_new();
	auto_free char *before = NULL, *after = NULL, *given = NULL, *patch = NULL;

	write_change(old, new, diff);
	before = text_drain(old, NULL);
	after = text_drain(new, NULL);
	given = text_drain(diff, NULL);
	if (!strcmp(before, after))
		return;
	if (!roll(3) && strlen(before) > 1 &&
	    before[strlen(before) - 2] !=
		    '\n') /* the last line has no line feed; the diff doesn't know */
		before[strlen(before) - 1] = '\0';
	patch = checked("some file.c", before, "nowhere", given, NULL);
	put(directory, "some file.c", before);
	put(directory, "p.diff", patch);
	if (!run_git(directory, words))
		fail_msg("git does not apply\n%sto\n%s", patch, before);
	if (!strcmp(after, "") || before[strlen(before) - 1] == '\n')
		assert_text(directory, after);
}

static void test_git_applies(void **state)
{
	static char git[] = "git", version[] = "--version";
	char directory[] = "/tmp/rlmd-test-patch-XXXXXX";
	auto_free char *file = NULL, *patch = NULL;

	(void)state;
	if (!run_git("/", (char *const[]){git, version, NULL}))
		skip();
	assert_non_null(mkdtemp(directory));
	for (size_t i = 0; i < effort(150, 5); i++)
		try_one(directory);
	file = xasprintf("%s/some file.c", directory);
	patch = xasprintf("%s/p.diff", directory);
	unlink(file);
	unlink(patch);
	assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rewritten),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_names_that_cannot_stand_in_a_patch),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_git_applies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
