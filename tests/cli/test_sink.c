/* cli/sink: when a file is there, whose it is, and what is written as it stands. */
#include "cli/sink.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "directory.h"

static int enter(void **state)
{
	(void)state;
	return directory_enter();
}

static int leave(void **state)
{
	(void)state;
	return directory_leave((const char *const[]){"out", "older", "fifo", "socket", NULL});
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 0777;
}

static struct sink *open_sink(const char *path, bool confidential)
{
	struct rlmd_error err = {0};
	struct sink *sink = sink_new(path, confidential, &err);

	if (!sink)
		fail_msg("%s", err.text);
	return sink;
}

static void test_it_appears_when_it_is_whole(void **state)
{
	struct sink *sink = open_sink("out", false);

	(void)state;
	assert_true(sink_write(sink, text_of("a"), NULL));
	assert_true(sink_write(sink, text_of("b"), NULL));
	assert_int_equal(access("out", F_OK), -1);
	assert_true(sink_commit(sink, true, NULL));
	sink_free(sink);
	assert_content("out", "ab");
}

static void test_nothing_is_left_of_one_that_was_not_committed(void **state)
{
	struct sink *sink;

	(void)state;
	assert_true(file_write("older", text_of("x"), NULL));
	sink = open_sink("older", false);
	assert_true(sink_write(sink, text_of("a"), NULL));
	sink_free(sink);
	assert_content("older", "x");
	sink = open_sink("out", false);
	sink_free(sink);
	assert_int_equal(access("out", F_OK), -1);
	sink_free(NULL);
}

/* A new file is as others are, or its owner's alone; one that replaces another has its mode. */
static void test_modes(void **state)
{
	mode_t mask = umask(022);
	struct sink *sink;

	(void)state;
	sink = open_sink("out", false);
	assert_true(sink_commit(sink, false, NULL));
	sink_free(sink);
	assert_int_equal(mode_of("out"), 0644);
	unlink("out");
	sink = open_sink("out", true);
	assert_true(sink_commit(sink, false, NULL));
	sink_free(sink);
	assert_int_equal(mode_of("out"), 0600);
	chmod("out", 0640);
	sink = open_sink("out", false);
	assert_true(sink_commit(sink, false, NULL));
	sink_free(sink);
	assert_int_equal(mode_of("out"), 0640);
	umask(mask);
}

/* A FIFO is written at once, and stays what it is. */
static void test_in_place(void **state)
{
	struct sink *sink;
	struct stat st;
	char bytes[8];
	int reader;

	(void)state;
	assert_int_equal(mkfifo("fifo", 0600), 0);
	reader = open("fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	sink = open_sink("fifo", false);
	assert_true(sink_write(sink, text_of("abc"), NULL));
	assert_int_equal(read(reader, bytes, sizeof bytes), 3);
	assert_memory_equal(bytes, "abc", 3);
	assert_false(sink_reader_gone(sink));
	close(reader);
	assert_true(sink_reader_gone(sink));
	assert_false(sink_write(sink, text_of("d"), NULL));
	assert_true(sink_commit(sink, true, NULL));
	sink_free(sink);
	assert_int_equal(stat("fifo", &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
}

/* A descriptor that was given to the program goes on where it stands. */
static void test_descriptors(void **state)
{
	int fd = open("out", O_WRONLY | O_CREAT, 0600);
	auto_free char *path = xasprintf("/dev/fd/%d", fd);
	struct rlmd_error err = {0};
	struct sink *sink;

	(void)state;
	assert_int_equal(write(fd, "a", 1), 1);
	sink = open_sink(path, false);
	assert_true(sink_write(sink, text_of("b"), NULL));
	assert_true(sink_commit(sink, false, NULL));
	sink_free(sink);
	assert_content("out", "ab");
	fcntl(fd, F_SETFD, FD_CLOEXEC); /* as those that are our own */
	assert_null(sink_new(path, false, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	close(fd);
}

static void test_refused(void **state)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "socket"};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct rlmd_error err = {0};

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
	assert_null(sink_new("socket", false, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(err.text, "it is a socket"));
	close(fd);
	assert_null(sink_new("no/such/directory", false, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_null(sink_new(".", false, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
}

static void test_standard_output(void **state)
{
	struct sink *sink = open_sink("-", true);

	(void)state;
	assert_int_equal(sink_fd(sink), STDOUT_FILENO);
	assert_true(sink_commit(sink, true, NULL));
	sink_free(sink);
	assert_true(fcntl(STDOUT_FILENO, F_GETFD) >= 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_it_appears_when_it_is_whole),
		TEST(test_nothing_is_left_of_one_that_was_not_committed),
		TEST(test_modes),
		TEST(test_in_place),
		TEST(test_descriptors),
		TEST(test_refused),
		TEST(test_standard_output),
	};

	alloc_install();
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("sink", tests, NULL, NULL);
}
