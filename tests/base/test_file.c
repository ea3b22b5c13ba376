/* Whole files: read with a limit, written all or not at all. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/wait.h"
#include "child.h"

/* A directory of its own for each test. */
struct place {
	char path[64];
};

static char *in(const struct place *place, const char *name)
{
	return xasprintf("%s/%s", place->path, name);
}

static int set_up(void **state)
{
	static struct place place;

	strcpy(place.path, "/tmp/test_file.XXXXXX");
	*state = &place;
	return mkdtemp(place.path) ? 0 : -1;
}

/* Fails where a test left a temporary file behind. */
static int tear_down(void **state)
{
	struct place *place = *state;

	return rmdir(place->path);
}

static void assert_unreadable(const char *path, size_t limit)
{
	struct rlmd_error err = {0};
	size_t size = 77;

	assert_null(file_read(path, limit, &size, &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(size, 77);
}

/* A file that was written is read back, NUL and all; the limit is the last size that passes. */
static void test_read(void **state)
{
	char *path = in(*state, "a");
	size_t size;
	char *bytes;

	assert_true(file_write(path, text_from("x\0\xff\n", 4), NULL));
	bytes = file_read(path, 4, &size, NULL);
	assert_non_null(bytes);
	assert_int_equal(size, 4);
	assert_memory_equal(bytes, "x\0\xff\n", 5);
	free(bytes);
	assert_unreadable(path, 3);
	assert_true(file_write(path, (struct rlmd_text){0}, NULL));
	bytes = file_read(path, 0, NULL, NULL);
	assert_string_equal(bytes, "");
	free(bytes);
	unlink(path);
	free(path);
}

/* A missing file, a directory or a FIFO is refused with its name, without waiting for a writer. */
static void test_unreadable(void **state)
{
	struct place *place = *state;
	char *path = in(place, "fifo");

	assert_unreadable(path, 10);
	assert_unreadable(place->path, 10);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_unreadable(path, 10);
	unlink(path);
	free(path);
}

/* A new file is its owner's alone; an old one is replaced, not written over. */
static void test_write(void **state)
{
	char *path = in(*state, "b");
	struct stat before, after;
	char *bytes;

	assert_true(file_write(path, text_of("old and long"), NULL));
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(before.st_mode & 0777, 0600);
	assert_true(file_write(path, text_of("new"), NULL));
	assert_int_equal(stat(path, &after), 0);
	assert_int_not_equal(before.st_ino, after.st_ino);
	bytes = file_read(path, 100, NULL, NULL);
	assert_string_equal(bytes, "new");
	free(bytes);
	unlink(path);
	free(path);
}

static void test_unwritable(void **state)
{
	char *path = in(*state, "none/c");
	struct rlmd_error err;

	assert_false(file_write(path, text_of("x"), &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	assert_non_null(strstr(err.text, path));
	assert_false(file_write(((struct place *)*state)->path, text_of("x"), &err));
	free(path);
}

/* A descriptor that cannot take all at once is waited for. */
static void test_write_fd(void **state)
{
	enum { SIZE = 1 << 20 };
	char *bytes = xcalloc(SIZE, 1);
	size_t got = 0;
	int fds[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	pid = fork();
	if (!pid) {
		close(fds[0]);
		child_exit(!file_write_fd(fds[1], text_from(bytes, SIZE), NULL));
	}
	close(fds[1]);
	fcntl(fds[0], F_SETFL, 0);
	for (ssize_t size; (size = read(fds[0], bytes, SIZE)) > 0;)
		got += (size_t)size;
	assert_int_equal(got, SIZE);
	close(fds[0]);
	free(bytes);
}

/* A reader is fed in pieces that a blocking pipe takes at once; one who reads nothing is given up,
 * and one who closed fails at once. */
static void test_feed_fd(void **state)
{
	enum { SIZE = 1 << 20 };
	char *bytes = xcalloc(SIZE, 1);
	struct rlmd_error err = {0};
	int fds[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(fds), 0);
	assert_true(file_feed_fd(fds[1], text_from(bytes, 5000), 10, &err));
	assert_int_equal(read(fds[0], bytes, SIZE), 5000);
	assert_false(file_feed_fd(fds[1], text_from(bytes, SIZE), 10, &err));
	assert_int_equal(err.kind, RLMD_ERROR_INTERNAL);
	assert_non_null(strstr(err.text, "nobody read"));
	close(fds[0]);
	assert_false(file_feed_fd(fds[1], text_from(bytes, SIZE), 60000, &err));
	assert_non_null(strstr(err.text, strerror(EPIPE)));
	close(fds[1]);
	free(bytes);
}

/* Bytes are waited for until a deadline; the end is none, and no error. */
static void test_take_fd(void **state)
{
	struct rlmd_error err = {0};
	char bytes[8];
	size_t size = 9;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_false(file_take_fd(fds[0], bytes, sizeof bytes, clock_ms() + 10, &size, &err));
	assert_int_equal(err.kind, RLMD_ERROR_BUDGET);
	assert_non_null(strstr(err.text, "the time was over"));
	assert_int_equal(size, 9);
	assert_int_equal(write(fds[1], "abc", 3), 3);
	assert_true(file_take_fd(fds[0], bytes, sizeof bytes, WAIT_FOREVER, &size, &err));
	assert_int_equal(size, 3);
	assert_memory_equal(bytes, "abc", 3);
	close(fds[1]);
	assert_true(file_take_fd(fds[0], bytes, sizeof bytes, WAIT_FOREVER, &size, &err));
	assert_int_equal(size, 0);
	close(fds[0]);
	fds[0] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_false(file_take_fd(fds[0], bytes, sizeof bytes, clock_ms() + 1000, &size, &err));
	assert_non_null(strstr(err.text, strerror(EISDIR)));
	close(fds[0]);
}

/* A name of a descriptor, in each of the ways that there are. */
static void test_descriptor_of(void **state)
{
	static const struct {
		const char *path;
		int fd;
	} cases[] = {{"/dev/stdin", 0},        {"/dev/stdout", 1},     {"/dev/stderr", 2},
		     {"/dev/fd/63", 63},       {"/dev/fd/", -1},       {"/dev/fd/1x", -1},
		     {"/dev/fd/99999999", -1}, {"/proc/self/fd/5", 5}, {"/tmp/1", -1}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(file_descriptor_of(cases[i].path), cases[i].fd);
}

/* A file to write to may be ours or not there; not a stranger's, nor a link of his. */
static void test_may_write(void **state)
{
	char *path = in(*state, "a"), *link = in(*state, "link");
	struct rlmd_error err = {0};
	struct stat st;

	assert_true(file_may_write(path, &st, RLMD_ERROR_USAGE, &err));
	assert_int_equal(st.st_ino, 0);
	assert_true(file_write(path, text_of("x"), &err));
	assert_true(file_may_write(path, &st, RLMD_ERROR_USAGE, &err));
	assert_int_equal(st.st_size, 1);
	assert_true(file_may_write("/dev/null", &st, RLMD_ERROR_USAGE, &err));
	if (!geteuid()) { /* only root can make what belongs to a stranger */
		assert_int_equal(chown(path, 65534, (gid_t)-1), 0);
		assert_false(file_may_write(path, &st, RLMD_ERROR_USAGE, &err));
		assert_int_equal(err.kind, RLMD_ERROR_USAGE);
		assert_non_null(strstr(err.text, "another user"));
		assert_int_equal(symlink(path, link), 0);
		assert_false(file_may_write(link, &st, RLMD_ERROR_USAGE, &err));
		unlink(link);
	}
	unlink(path);
	free(path);
	free(link);
}

/* Others who can write a file can put words into our mouth; the error says what to do. */
static void test_ours(void **state)
{
	char *path = in(*state, "a");
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	static const mode_t open_modes[] = {0620, 0602, 0666};
	struct rlmd_error err = {0};

	assert_true(file_is_ours(fd, path, RLMD_ERROR_USAGE, &err));
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_true(file_is_ours(fd, path, RLMD_ERROR_USAGE, &err));
	for (size_t i = 0; i < sizeof open_modes / sizeof *open_modes; i++) {
		assert_int_equal(fchmod(fd, open_modes[i]), 0);
		assert_false(file_is_ours(fd, path, RLMD_ERROR_AUTH, &err));
		assert_int_equal(err.kind, RLMD_ERROR_AUTH);
		assert_non_null(strstr(err.text, "chmod go-w"));
	}
	close(fd);
	unlink(path);
	free(path);
}

/* Root's files are trusted, another user's are not. Only root can make such a file. */
static void test_another_users(void **state)
{
	char *path = in(*state, "a");
	int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	struct rlmd_error err = {0};

	assert_true(file_is_ours(fd, "/etc/passwd", RLMD_ERROR_USAGE, &err));
	close(fd);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(file_is_ours(fd, path, RLMD_ERROR_USAGE, &err));
	/* Only root can make a file that belongs to neither root nor us. */
	if (!geteuid()) {
		assert_int_equal(fchown(fd, 65534, (gid_t)-1), 0);
		assert_false(file_is_ours(fd, path, RLMD_ERROR_USAGE, &err));
		assert_non_null(strstr(err.text, "run: chown"));
	}
	close(fd);
	unlink(path);
	free(path);
}

/* By its name alone, for it is not to be opened. */
static void test_ours_by_name(void **state)
{
	char *path = in(*state, "a"), *link = in(*state, "link");
	struct rlmd_error err = {0};
	bool there = true;

	assert_true(file_name_is_ours(path, &there, RLMD_ERROR_USAGE, &err));
	assert_false(there);
	close(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	assert_true(file_name_is_ours(path, &there, RLMD_ERROR_USAGE, &err));
	assert_true(there);
	assert_int_equal(symlink(path, link), 0);
	assert_false(file_name_is_ours(link, &there, RLMD_ERROR_AUTH, &err));
	assert_int_equal(err.kind, RLMD_ERROR_AUTH);
	assert_non_null(strstr(err.text, "symbolic link"));
	unlink(link);
	assert_int_equal(mkfifo(link, 0600), 0);
	assert_false(file_name_is_ours(link, &there, RLMD_ERROR_USAGE, &err));
	assert_non_null(strstr(err.text, "no regular file"));
	unlink(link);
	assert_int_equal(chmod(path, 0660), 0);
	assert_false(file_name_is_ours(path, &there, RLMD_ERROR_USAGE, &err));
	assert_non_null(strstr(err.text, "chmod go-w"));
	assert_int_equal(chmod(path, 0600), 0);
	if (!geteuid()) { /* only root can make a file that is a stranger's */
		assert_int_equal(chown(path, 65534, (gid_t)-1), 0);
		assert_false(file_name_is_ours(path, &there, RLMD_ERROR_USAGE, &err));
		assert_non_null(strstr(err.text, "another user"));
	}
	unlink(path);
	free(path);
	free(link);
}

/* Beside the program where it is there, else where it is installed. */
static void test_shipped(void **state)
{
	char *path = file_shipped("share", "no such file");

	(void)state;
	assert_non_null(strstr(path, "/no such file"));
	assert_int_equal(path[0], '/');
	free(path);
}

static void assert_real(const char *path, const char *wanted)
{
	auto_free char *found = file_real_path(path);

	assert_string_equal(found, wanted);
}

/* Links and dots before its name go, and a link that it is itself stays. */
static void test_real_path(void **state)
{
	const struct place *place = *state;
	auto_free char *real = realpath(place->path, NULL);
	auto_free char *here = xasprintf("%s/x", real), *link = xasprintf("%s/link", real);
	auto_free char *missing = in(place, "none/x");

	assert_int_equal(symlink(real, link), 0);
	assert_int_equal(chdir(real), 0);
	assert_real("x", here);
	assert_real("./x", here);
	assert_real("link/x", here);
	assert_real("link/link", link);
	assert_real(link, link);
	assert_real(missing, missing);
	assert_int_equal(chdir("/"), 0);
	assert_real("x", "/x");
	assert_real("/x", "/x");
	assert_int_equal(unlink(link), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* Made where it is missing; a link, a file, and one that others may write to are refused. */
static void test_own_directory(void **state)
{
	char *path = in(*state, "own"), *link = in(*state, "link");
	struct rlmd_error err;
	struct stat st;
	int fd;

	for (int round = 0; round < 2; round++) {
		fd = file_own_directory(path, "cache", &err);
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_mode & 0777, 0700);
		close(fd);
	}
	assert_int_equal(symlink("own", link), 0);
	assert_int_equal(file_own_directory(link, "cache", &err), -1);
	assert_non_null(strstr(err.text, "has to be a directory and no link"));
	assert_int_equal(chmod(path, 0720), 0);
	assert_int_equal(file_own_directory(path, "cache", &err), -1);
	assert_non_null(strstr(err.text, "others may write to the cache"));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(file_own_directory(link, "cache", &err), -1);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	free(path);
	free(link);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_read),          TEST(test_unreadable),    TEST(test_write),
		TEST(test_unwritable),    TEST(test_write_fd),      TEST(test_feed_fd),
		TEST(test_take_fd),       TEST(test_descriptor_of), TEST(test_may_write),
		TEST(test_ours),          TEST(test_another_users), TEST(test_shipped),
		TEST(test_own_directory), TEST(test_ours_by_name),  TEST(test_real_path),
	};

	return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
