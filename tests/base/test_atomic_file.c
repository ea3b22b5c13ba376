/* A file that appears when it is whole, whatever file system it is on. */
#include "base/atomic_file.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"

static char directory[] = "/tmp/test_atomic_file.XXXXXX";

static int syncs;

/* Replaces the system's, which a test could not see. */
int fsync(int fd)
{
	syncs++;
	return fdatasync(fd);
}

static char *in(const char *name)
{
	return xasprintf("%s/%s", directory, name);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(strchr(directory, '.'), ".XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

/* How many names there are. */
static int count(void)
{
	DIR *listing = opendir(directory);
	int names = 0;

	while (readdir(listing))
		names++;
	closedir(listing);
	return names - 2;
}

static int tear_down(void **state)
{
	auto_free char *path = in("file");

	(void)state;
	unlink(path);
	return rmdir(directory); /* fails where something was left */
}

static void expect(const char *path, const char *content)
{
	size_t size;
	auto_free char *text = file_read(path, 100, &size, NULL);

	assert_string_equal(text, content);
}

/* The file is not seen before, and the older one is there until then. */
static void test_appears_whole(void **state)
{
	auto_free char *path = in("file");
	struct atomic_file file;
	struct stat st;

	(void)state;
	for (int round = 0; round < 2; round++) {
		assert_true(atomic_file_open(&file, path, 0640));
		assert_int_equal(write(file.fd, round ? "new" : "old", 3), 3);
		if (round)
			expect(path, "old");
		else
			assert_int_equal(access(path, F_OK), -1);
		assert_true(atomic_file_commit(&file, round));
		assert_int_equal(syncs, round); /* of one that shall outlive the machine */
		atomic_file_done(&file);
		expect(path, round ? "new" : "old");
		assert_int_equal(count(), 1);
	}
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
}

/* A program that is killed at any moment leaves no other name: a new file has one name only. */
static void test_new_file_has_one_name(void **state)
{
	auto_free char *path = in("file");
	alignas(struct inotify_event) char events[4096];
	const struct inotify_event *event = (const void *)events;
	int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	struct atomic_file file;
	ssize_t size;

	(void)state;
	assert_true(inotify_add_watch(watch, directory, IN_CREATE | IN_MOVE) >= 0);
	assert_true(atomic_file_open(&file, path, 0600));
	if (file.temporary) {
		atomic_file_done(&file);
		close(watch);
		print_message("# skipped: this file system makes no files without names\n");
		skip();
	}
	assert_true(atomic_file_commit(&file, false));
	atomic_file_done(&file);
	size = read(watch, events, sizeof events);
	assert_true(size >= (ssize_t)sizeof *event);
	assert_string_equal(event->name, "file");
	assert_int_equal(size, sizeof *event + event->len);
	close(watch);
}

static void test_not_committed(void **state)
{
	auto_free char *path = in("file");
	struct atomic_file file;

	(void)state;
	assert_true(atomic_file_open(&file, path, 0600));
	assert_int_equal(write(file.fd, "x", 1), 1);
	atomic_file_done(&file);
	assert_int_equal(count(), 0);
}

static void test_no_such_directory(void **state)
{
	auto_free char *path = in("no/where");
	struct atomic_file file;

	(void)state;
	errno = 0;
	assert_false(atomic_file_open(&file, path, 0600));
	assert_int_equal(errno, ENOENT);
}

/* A directory is in its place meanwhile: said, and nothing is left. */
static void test_cannot_be_put_there(void **state)
{
	auto_free char *path = in("file");
	struct atomic_file file;

	(void)state;
	assert_true(atomic_file_open(&file, path, 0600));
	assert_int_equal(mkdir(path, 0700), 0);
	assert_false(atomic_file_commit(&file, false));
	assert_int_equal(errno, EISDIR);
	atomic_file_done(&file);
	assert_int_equal(count(), 1);
	assert_int_equal(rmdir(path), 0);
}

/* A FIFO, a socket or a device is nobody's to replace; neither is one that a link leads to. */
static void test_replaces_regular_files_only(void **state)
{
	static const mode_t kinds[] = {S_IFIFO, S_IFSOCK, S_IFCHR};
	auto_free char *path = in("file"), *target = in("target");
	struct atomic_file file;
	struct stat st;

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (mknod(target, kinds[i] | 0600, makedev(1, 3))) {
			assert_int_equal(errno, EPERM); /* an ordinary user makes no devices */
			continue;
		}
		for (int link = 0; link < 2; link++) {
			assert_int_equal(link ? symlink("target", path) : rename(target, path), 0);
			assert_false(atomic_file_open(&file, path, 0600));
			assert_int_equal(errno, EEXIST);
			assert_int_equal(lstat(path, &st), 0);
			assert_int_equal(st.st_mode & S_IFMT, link ? S_IFLNK : kinds[i]);
			assert_int_equal(unlink(path), 0);
			assert_true(atomic_file_open(&file, path, 0600));
			assert_int_equal(mknod(path, kinds[i] | 0600, makedev(1, 3)), 0);
			assert_false(atomic_file_commit(&file, false));
			assert_int_equal(errno, EEXIST);
			atomic_file_done(&file);
			assert_int_equal(lstat(path, &st), 0);
			assert_int_equal(st.st_mode & S_IFMT, kinds[i]);
			assert_int_equal(rename(path, target), 0);
		}
		assert_int_equal(unlink(target), 0);
	}
}

/* The link goes: what it led to may be anybody's. */
static void test_takes_the_place_of_a_link(void **state)
{
	auto_free char *path = in("file"), *target = in("target");

	(void)state;
	for (int there = 0; there < 2; there++) {
		struct atomic_file file;
		struct stat st;

		if (there)
			assert_true(file_write(target, text_of("older"), NULL));
		assert_int_equal(symlink("target", path), 0);
		assert_true(atomic_file_open(&file, path, 0600));
		assert_true(atomic_file_commit(&file, false));
		atomic_file_done(&file);
		assert_int_equal(lstat(path, &st), 0);
		assert_true(S_ISREG(st.st_mode));
		assert_int_equal(unlink(path), 0);
		if (there)
			expect(target, "older");
		assert_int_equal(unlink(target), there ? 0 : -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_appears_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_new_file_has_one_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_not_committed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_such_directory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cannot_be_put_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_replaces_regular_files_only, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_takes_the_place_of_a_link, set_up, tear_down),
	};

	umask(0);
	alloc_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
