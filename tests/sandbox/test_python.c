/* Finding the interpreter: shims are asked, and what cannot serve is named. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "sandbox/python.h"

#define PATIENCE_MS 600000 /* far beyond what anything here takes */
#define SLOW_MS     3000   /* for one that hangs; twice that is enough for one that does not */

static char directory[] = "/tmp/rlmd-python-XXXXXX";

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	static const char *const names[] = {"python3", "other", "link"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof names / sizeof names[0]; i++) {
		auto_free char *path = xasprintf("%s/%s", directory, names[i]);

		unlink(path);
	}
	return rmdir(directory);
}

static char *write_program(const char *name, const char *content)
{
	auto_free char *path = xasprintf("%s/%s", directory, name);
	struct rlmd_error err = {0};

	unlink(path);
	assert_true(file_write(path, text_of(content), &err));
	assert_int_equal(chmod(path, 0755), 0);
	return take_pointer(&path);
}

static void expect_error(enum rlmd_error_kind kind, const char *name, int64_t patience_ms,
			 const char *in_text)
{
	struct rlmd_error err = {0};
	auto_free char *found = python_find(name, patience_ms, &err);

	assert_null(found);
	assert_int_equal(err.kind, kind);
	if (!strstr(err.text, in_text) || !strstr(err.text, "(python)"))
		fail_msg("unexpected text: %s", err.text);
}

static void expect_usage(const char *name, int64_t patience_ms, const char *in_text)
{
	expect_error(RLMD_ERROR_USAGE, name, patience_ms, in_text);
}

/* A binary is taken as it is named: a virtual environment is known by its link. */
static void links_stay_links(void **state)
{
	auto_free char *link = xasprintf("%s/link", directory);
	struct rlmd_error err = {0};
	auto_free char *found = NULL;

	(void)state;
	assert_int_equal(symlink("/bin/sh", link), 0);
	found = python_find(link, PATIENCE_MS, &err);
	assert_string_equal(found, link);
}

/* By the file behind all links, if its name says it. */
static void version_of_the_file(void **state)
{
	static const struct {
		const char *file, *version;
	} cases[] = {{"python3.12", "3.12"},
		     {"python3.9", "3.9"},
		     {"python3", NULL},
		     {"pypy3.10", NULL},
		     {"python3.11-dbg", NULL}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		auto_free char *path = write_program(cases[i].file, "x"), *version = NULL;

		version = python_version(path);
		if (cases[i].version)
			assert_string_equal(version, cases[i].version);
		else
			assert_null(version);
		unlink(path);
	}
	assert_null(python_version("/nowhere/python3.11"));
}

/* The shims of version managers are scripts; what they stand for is what they would start. */
static void shim_is_asked(void **state)
{
	auto_free char *shim = write_program(
		"python3", "#!/bin/sh\n[ \"$1$2$3\" = -I-S-c ] && echo /bin/sh\n");
	struct rlmd_error err = {0};
	auto_free char *found = python_find(shim, PATIENCE_MS, &err);

	(void)state;
	assert_string_equal(found, "/bin/sh");
}

/* A shim hears nothing of our keys (G6 begins before the sandbox does). */
static void shim_gets_no_keys(void **state)
{
	auto_free char *shim = write_program(
		"python3",
		"#!/bin/sh\n[ -z \"$OPENAI_API_KEY\" ] && [ -n \"$PATH\" ] && echo /bin/sh\n");
	struct rlmd_error err = {0};
	auto_free char *found = NULL;

	(void)state;
	setenv("OPENAI_API_KEY", "secret", 1);
	found = python_find(shim, PATIENCE_MS, &err);
	unsetenv("OPENAI_API_KEY");
	assert_string_equal(found, "/bin/sh");
}

/* PATH is searched as a shell would, past what cannot be executed. */
static void path_is_searched(void **state)
{
	auto_free char *before = xstrdup(getenv("PATH"));
	auto_free char *path = xasprintf("relative::/nonexistent:/etc:%s", directory);
	struct rlmd_error err = {0};
	auto_free char *found = NULL;

	(void)state;
	free(write_program("python3", "#!/bin/sh\necho /bin/sh\n"));
	setenv("PATH", path, 1);
	found = python_find("python3", PATIENCE_MS, &err);
	setenv("PATH", before, 1);
	assert_string_equal(found, "/bin/sh");
}

/* Where there is none, as after env -i, the places are those of execvp(3). */
static void usual_places_are_searched(void **state)
{
	auto_free char *before = xstrdup(getenv("PATH"));
	struct rlmd_error err = {0};
	auto_free char *found = NULL;

	(void)state;
	unsetenv("PATH");
	found = python_find("sh", PATIENCE_MS, &err);
	setenv("PATH", before, 1);
	assert_non_null(found);
	assert_string_equal(strrchr(found, '/'), "/sh");
}

static void missing_is_named(void **state)
{
	(void)state;
	expect_usage("/nonexistent/python3", PATIENCE_MS, "/nonexistent/python3");
	expect_usage("no-such-python", PATIENCE_MS, "no-such-python");
	expect_usage(directory, PATIENCE_MS, directory);
	expect_usage("", PATIENCE_MS, "");
}

static void text_is_no_program(void **state)
{
	auto_free char *other = write_program("other", "hello\n");

	(void)state;
	expect_usage(other, PATIENCE_MS, "not a program");
}

/* The complaints of a shim are shown; what it answers is checked, not believed. */
static void useless_shims_are_explained(void **state)
{
	auto_free char *shim = write_program(
		"python3", "#!/bin/sh\necho 'version 9.9 is missing' >&2; exit 1\n");

	(void)state;
	expect_usage(shim, PATIENCE_MS, "version 9.9 is missing");
	free(shim);
	shim = write_program("python3", "#!/bin/sh\necho relative/python\n");
	expect_usage(shim, PATIENCE_MS, "does not say");
	free(shim);
	shim = write_program("python3", "#!/bin/sh\necho \"$0\"\n");
	expect_usage(shim, PATIENCE_MS, "does not say");
	free(shim);
	shim = write_program("python3", "#!/bin/sh\nyes /bin/sh | tr -d '\\n'\n");
	expect_usage(shim, PATIENCE_MS, "does not say");
}

/* A script that hangs is ended with all that it has started; that is no fault of the command line.
 */
static void patience_ends(void **state)
{
	auto_free char *shim = write_program("python3", "#!/bin/sh\nsleep 100000 & wait\n");
	int64_t begin = clock_ms();

	(void)state;
	expect_error(RLMD_ERROR_SANDBOX, shim, 50,
		     "did not say which Python it is for within 100ms");
	assert_true(clock_ms() - begin < PATIENCE_MS);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* One that was slow, or killed, may answer when it is asked once more. */
static void bad_luck_is_forgiven(void **state)
{
	static const char *const mishaps[] = {"sleep 1000", "kill -9 $$"};
	auto_free char *tried = xasprintf("%s/link", directory);
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		auto_free char *code = xasprintf("#!/bin/sh\n[ -e %s ] || { : >%s; %s; }\n"
						 "echo /bin/sh\n",
						 tried, tried, mishaps[i]);
		auto_free char *shim = write_program("python3", code);
		struct rlmd_error err = {0};
		auto_free char *found = NULL;

		unlink(tried);
		found = python_find(shim, SLOW_MS, &err);
		if (!found)
			fail_msg("%s", err.text);
		assert_string_equal(found, "/bin/sh");
	}
}

static void killed_for_good(void **state)
{
	auto_free char *shim = write_program("python3", "#!/bin/sh\nkill -9 $$\n");

	(void)state;
	expect_error(RLMD_ERROR_SANDBOX, shim, PATIENCE_MS, "was killed before it said");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_stay_links),
		cmocka_unit_test(version_of_the_file),
		cmocka_unit_test(shim_is_asked),
		cmocka_unit_test(shim_gets_no_keys),
		cmocka_unit_test(path_is_searched),
		cmocka_unit_test(usual_places_are_searched),
		cmocka_unit_test(missing_is_named),
		cmocka_unit_test(text_is_no_program),
		cmocka_unit_test(useless_shims_are_explained),
		cmocka_unit_test(patience_ends),
		cmocka_unit_test(bad_luck_is_forgiven),
		cmocka_unit_test(killed_for_good),
	};

	return cmocka_run_group_tests_name("python", tests, make_directory, remove_directory);
}
