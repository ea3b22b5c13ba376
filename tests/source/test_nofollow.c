/* source/nofollow: files below a directory, and no way out of it. */
#include "source/nofollow.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"

/* outside/secret, and beside it in/: a/b/file, a link to each way out, and a FIFO. */
static char place[] = "/tmp/test_nofollow-XXXXXX";
static int directory = -1;

static int set_up(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(place));
	assert_int_equal(chdir(place), 0);
	assert_int_equal(mkdir("in", 0700) | mkdir("in/a", 0700) | mkdir("in/a/b", 0700), 0);
	assert_int_equal(mkdir("outside", 0700), 0);
	assert_true(file_write("in/a/b/file", text_of("12345"), NULL));
	assert_true(file_write("outside/secret", text_of("x"), NULL));
	assert_int_equal(symlink("../outside", "in/out"), 0);
	assert_int_equal(symlink("b/file", "in/a/link"), 0);
	assert_int_equal(mkfifo("in/fifo", 0600), 0);
	directory = open("in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return directory < 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(directory);
	return unlink("in/a/b/file") | unlink("outside/secret") | unlink("in/out") |
	       unlink("in/a/link") | unlink("in/fifo") | rmdir("in/a/b") | rmdir("in/a") |
	       rmdir("in") | rmdir("outside") | rmdir(place);
}

static void test_files(void **state)
{
	static const char *const none[] = {"out/secret",       "a/link",   "../outside/secret",
					   "a/../a/b/file",    "a/b",      "fifo",
					   "a/b/file/further", "a/b/none", ""};
	auto_close int fd = nofollow_file(directory, "a/b/file");

	(void)state;
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		if (nofollow_file(directory, none[i]) >= 0)
			fail_msg("%s", none[i]);
}

static void test_directories(void **state)
{
	static const char *const none[] = {"out", "a/link", "..", "a/b/..", "fifo", "a/b/file"};
	auto_close int fd = nofollow_directory(directory, "a/b");

	(void)state;
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		if (nofollow_directory(directory, none[i]) >= 0)
			fail_msg("%s", none[i]);
}

static void test_reading(void **state)
{
	size_t size = 0;
	auto_free char *bytes = nofollow_read(directory, "a/b/file", 5, &size);

	(void)state;
	assert_string_equal(bytes, "12345");
	assert_int_equal(size, 5);
	assert_null(nofollow_read(directory, "a/b/file", 4, &size));
	assert_null(nofollow_read(directory, "a/link", 5, &size));
	assert_null(nofollow_read(directory, "none", 5, &size));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_directories),
		cmocka_unit_test(test_reading),
	};

	return cmocka_run_group_tests_name("nofollow", tests, set_up, tear_down);
}
