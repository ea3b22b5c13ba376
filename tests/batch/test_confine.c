/* batch/confine: what lies in a directory, whatever words and links lead there. */
#include "batch/confine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"

static char *home; /* without links */

static int set_up(void **state)
{
	char place[] = "/tmp/rlmd-confine-XXXXXX";

	(void)state;
	home = mkdtemp(place) ? realpath(place, NULL) : NULL;
	if (!home || chdir(home) || mkdir("in", 0700) || mkdir("in/deep", 0700) ||
	    mkdir("inside", 0700) || symlink("in", "way") || symlink("/etc", "in/out") ||
	    symlink("../inside", "in/beside") || symlink("deep", "in/fine") ||
	    symlink("in/deep", "aside") || mkdir("git:HEAD", 0700))
		return -1;
	return 0;
}

static int tear_down(void **state)
{
	static const char *const links[] = {"way", "in/out", "in/beside", "in/fine", "aside"};
	static const char *const directories[] = {"in/deep", "in", "inside", "git:HEAD"};

	(void)state;
	for (size_t i = 0; i < 5; i++)
		unlink(links[i]);
	for (size_t i = 0; i < 4; i++)
		rmdir(directories[i]);
	if (chdir("/"))
		return -1;
	rmdir(home);
	free(home);
	return 0;
}

static void expect(const char *directory, const char *path, const char *place)
{
	auto_free char *wanted = place ? xasprintf("%s/%s", home, place) : NULL;
	struct rlmd_error err = {0};
	auto_free char *found = confine(directory, path, "--allow-outside", &err);

	if (place) {
		assert_string_equal(found, wanted);
		return;
	}
	assert_null(found);
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
}

static void test_inside(void **state)
{
	auto_free char *whole = xasprintf("%s/way/deep", home);

	(void)state;
	expect("in", "in/deep", "in/deep");
	expect("in", "in/./deep/../fine", "in/deep");
	expect("way", "way/deep", "in/deep");
	expect("way", "in/deep", "in/deep");
	expect("in/", "in//deep/", "in/deep");
	expect("in", "in", "in");
	expect(".", "./in", "in");
	expect(home, whole, "in/deep");
	expect("/", whole, "in/deep");
}

static void test_outside(void **state)
{
	(void)state;
	expect("in", "inside", NULL);
	expect("in", "in/..", NULL);
	expect("in", "in/../inside", NULL);
	expect("in", "in/beside", NULL);
	expect("in", "in/out", NULL);
	expect("in", "in/out/hostname", NULL);
	expect("in", "/etc/hostname", NULL);
	expect("in", "/etc/there-is-none", NULL);
	expect("in", "in/there-is-none", NULL);
	expect("in", "aside", NULL); /* though it leads inside */
	expect("in", "git:HEAD", NULL);
	expect(".", "git:HEAD", NULL); /* it would be read as a revision */
	expect("nowhere", "nowhere/x", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inside),
		cmocka_unit_test(test_outside),
	};

	return cmocka_run_group_tests_name("confine", tests, set_up, tear_down);
}
