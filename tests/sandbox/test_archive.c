/* The cache of modules: what is kept and read back, and all that is not believed. */
#include "sandbox/archive.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "sandbox/launch.h"

#define NOBODY 65534
#define ABSENT UINT64_MAX
#define LARGE  ((size_t)2 << 20)

/* A cache in a directory of its own, and sources that archives are made of. */
struct place {
	char root[40], cache[60], rlmd[80], python[60], source[60], script[80];
	struct log log;
	size_t refusals;
	char refusal[1000]; /* the last */
};

static void on_record(void *owner, const struct rlmd_log_record *record)
{
	struct place *place = owner;

	assert_string_equal(record->event, "cache_refused");
	place->refusals++;
	snprintf(place->refusal, sizeof place->refusal, "%s", record->message);
}

static void write_file(const char *path, const char *bytes, size_t size)
{
	struct rlmd_error err = {0};

	if (!file_write(path, text_from(bytes, size), &err))
		fail_msg("%s", err.text);
}

static void write_text(const char *path, const char *text)
{
	write_file(path, text, strlen(text));
}

static int place_open(void **state)
{
	struct place *place = xcalloc(1, sizeof *place);

	strcpy(place->root, "/tmp/rlmd-archive-XXXXXX");
	assert_non_null(mkdtemp(place->root));
	snprintf(place->cache, sizeof place->cache, "%s/cache", place->root);
	snprintf(place->rlmd, sizeof place->rlmd, "%s/rlmd", place->cache);
	snprintf(place->python, sizeof place->python, "%s/python3", place->root);
	snprintf(place->source, sizeof place->source, "%s/source.py", place->root);
	strcpy(place->script, "/worker/start.py");
	write_text(place->python, "an interpreter");
	write_text(place->source, "value = 1\n");
	place->log = log_root(RLMD_LOG_DEBUG, on_record, place);
	*state = place;
	return 0;
}

static void remove_all(const char *path)
{
	DIR *directory;
	const struct dirent *entry;

	if (!unlink(path))
		return;
	directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		auto_free char *inside = xasprintf("%s/%s", path, entry->d_name);

		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			remove_all(inside);
	}
	if (directory)
		closedir(directory);
	rmdir(path);
}

static int place_close(void **state)
{
	struct place *place = *state;
	int left;

	remove_all(place->root);
	left = !access(place->root, F_OK);
	free(place);
	return left;
}

static struct archive *open_archive(struct place *place)
{
	return archive_new(place->cache, place->python, place->script, &place->log);
}

/* How many files the cache has; the name of one of them goes to `ret_name`, new, or NULL. */
static int count_files(const struct place *place, char **ret_name)
{
	DIR *directory = opendir(place->rlmd);
	const struct dirent *entry;
	int count = 0;

	*ret_name = NULL;
	while (directory && (entry = readdir(directory))) {
		if (*entry->d_name == '.')
			continue;
		free(*ret_name);
		*ret_name = xasprintf("%s/%s", place->rlmd, entry->d_name);
		count++;
	}
	if (directory)
		closedir(directory);
	return count;
}

static void expect_files(const struct place *place, int expected)
{
	auto_free char *name = NULL;

	assert_int_equal(count_files(place, &name), expected);
}

static void put(int fd, const void *bytes, size_t size)
{
	assert_int_equal(write(fd, bytes, size), size);
}

/* As worker/gather.py does it. */
static void put_stamp(int fd, const char *path)
{
	uint64_t facts[2] = {0, ABSENT};
	struct stat st;

	if (!stat(path, &st)) {
		facts[0] = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
		facts[1] = S_ISDIR(st.st_mode) ? 0 : (uint64_t)st.st_size;
	}
	put(fd, facts, sizeof facts);
	put(fd, path, strlen(path) + 1);
}

/* Modules, an index, the stamp of the source and that of a file that is not there. */
static void fill(const struct place *place, int fd)
{
	struct launch_archive head = {.size = 0};
	auto_free char *missing = xasprintf("%s/missing.py", place->root);
	char modules[1000];

	memset(modules, 'm', sizeof modules);
	memcpy(head.magic, LAUNCH_ARCHIVE_MAGIC, sizeof head.magic);
	head.index = sizeof head + sizeof modules;
	head.stamps = head.index + 5;
	put(fd, &head, sizeof head);
	put(fd, modules, sizeof modules);
	put(fd, "index", 5);
	put_stamp(fd, place->source);
	put_stamp(fd, "/");
	put_stamp(fd, missing);
	head.size = (uint64_t)lseek(fd, 0, SEEK_CUR);
	assert_int_equal(pwrite(fd, &head, sizeof head, 0), sizeof head);
}

static void seal(int fd)
{
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK), 0);
}

static struct archive *begin(struct place *place, uint32_t verdict)
{
	struct archive *archive = open_archive(place);
	struct rlmd_error err = {0};

	assert_true(archive_begin(archive, &err));
	assert_true(archive_store(archive) >= 0);
	assert_int_equal(archive_judge(archive), verdict);
	assert_int_equal(archive_verdict(archive), verdict);
	return archive;
}

static void end(struct archive *archive)
{
	archive_keep(archive);
	archive_free(archive);
}

static void expect_verdict(struct place *place, uint32_t verdict)
{
	archive_free(begin(place, verdict));
}

/* One that was wanted, is gathered and kept. */
static void keep(struct place *place)
{
	struct archive *archive = begin(place, LAUNCH_ARCHIVE_WANTED);

	fill(place, archive_store(archive));
	seal(archive_store(archive));
	end(archive);
	expect_verdict(place, LAUNCH_ARCHIVE_GIVEN);
}

/* And its path, new, where the cache has no other. */
static char *keep_one(struct place *place)
{
	char *name;

	keep(place);
	assert_int_equal(count_files(place, &name), 1);
	return name;
}

static void flip(const char *path, off_t offset)
{
	auto_close int fd = open(path, O_RDWR | O_CLOEXEC);
	char byte;

	assert_int_equal(pread(fd, &byte, 1, offset), 1);
	byte = (char)(byte ^ 1);
	assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
}

static void kept_and_read_back(void **state)
{
	struct place *place = *state;
	struct archive *archive = begin(place, LAUNCH_ARCHIVE_WANTED);
	char gathered[2000], kept[2000];
	auto_free char *path = NULL;
	struct stat st;
	ssize_t size;

	assert_int_equal(archive_file(archive), -1);
	fill(place, archive_store(archive));
	size = pread(archive_store(archive), gathered, sizeof gathered, 0);
	put(archive_store(archive), "what comes later is not of it", 29);
	seal(archive_store(archive));
	end(archive);
	assert_int_equal(count_files(place, &path), 1);
	assert_false(stat(path, &st));
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, size + 8);
	assert_false(stat(place->rlmd, &st));
	assert_int_equal(st.st_mode & 07777, 0700);

	archive = begin(place, LAUNCH_ARCHIVE_GIVEN);
	assert_int_equal(pread(archive_file(archive), kept, sizeof kept, 0), size + 8);
	assert_memory_equal(kept, gathered, size);
	end(archive); /* what was given is not kept again */
	assert_int_equal(place->refusals, 0);
	expect_files(place, 1);
}

/* Each template of a sandbox has its store; what the one before it gathered is gone. */
static void begun_again(void **state)
{
	struct place *place = *state;
	struct archive *archive = begin(place, LAUNCH_ARCHIVE_WANTED);
	struct rlmd_error err;
	struct stat st;

	fill(place, archive_store(archive));
	assert_true(archive_begin(archive, &err));
	assert_int_equal(archive_verdict(archive), LAUNCH_ARCHIVE_NONE);
	assert_false(fstat(archive_store(archive), &st));
	assert_int_equal(st.st_size, 0);
	end(archive);
	expect_files(place, 0);
	keep(place);
}

/* One that an installation has, beside the worker's directory, is used where the user has none. */
static void shipped(void **state)
{
	struct place *place = *state;
	auto_free char *mine = NULL, *directory = xasprintf("%s/bytecode", place->root);
	auto_free char *theirs = NULL;
	struct archive *archive;

	snprintf(place->script, sizeof place->script, "%s/worker/start.py", place->root);
	keep(place);
	assert_int_equal(count_files(place, &mine), 1);
	theirs = xasprintf("%s/%s", directory, strrchr(mine, '/') + 1);
	assert_false(mkdir(directory, 0755));
	assert_false(rename(mine, theirs));
	archive = begin(place, LAUNCH_ARCHIVE_GIVEN);
	assert_true(archive_file(archive) >= 0);
	end(archive);
	expect_files(place, 0); /* nothing is kept beside it */
	snprintf(place->cache, sizeof place->cache, "/nowhere/cache");
	expect_verdict(place, LAUNCH_ARCHIVE_GIVEN);
	assert_int_equal(place->refusals, 0);
	assert_false(chmod(theirs, 0666));
	expect_verdict(place, LAUNCH_ARCHIVE_NONE);
	assert_int_equal(place->refusals, 1);
	assert_non_null(strstr(place->refusal, theirs));
	assert_false(chmod(theirs, 0644));
	write_text(place->source, "value = 20\n");
	expect_verdict(place, LAUNCH_ARCHIVE_NONE);
	snprintf(place->cache, sizeof place->cache, "%s/cache", place->root);
	keep(place); /* of the user's own, which then goes first */
	expect_files(place, 1);
}

static void set_time(const char *path, time_t seconds, long nanoseconds)
{
	const struct timespec times[2] = {{seconds, nanoseconds}, {seconds, nanoseconds}};

	assert_false(utimensat(AT_FDCWD, path, times, 0));
}

/* Layers of images keep whole seconds of times; what was written anew has others. */
static void copied_with_its_sources(void **state)
{
	struct place *place = *state;

	set_time(place->source, 1000, 123456789);
	keep(place);
	set_time(place->source, 1000, 0);
	expect_verdict(place, LAUNCH_ARCHIVE_GIVEN);
	set_time(place->source, 1000, 5);
	expect_verdict(place, LAUNCH_ARCHIVE_WANTED);
	set_time(place->source, 1001, 0);
	expect_verdict(place, LAUNCH_ARCHIVE_WANTED);
}

static void no_home(void **state)
{
	struct place *place = *state;
	struct archive *archive = archive_new(NULL, place->python, "/worker/start.py", &place->log);
	struct rlmd_error err;

	assert_true(archive_begin(archive, &err));
	assert_true(archive_store(archive) >= 0);
	assert_int_equal(archive_judge(archive), LAUNCH_ARCHIVE_NONE);
	fill(place, archive_store(archive));
	seal(archive_store(archive));
	end(archive);
	archive_free(NULL);
	snprintf(place->cache, sizeof place->cache, "%s/no/cache", place->root);
	expect_verdict(place, LAUNCH_ARCHIVE_NONE); /* only the last directory is made */
	snprintf(place->cache, sizeof place->cache, "%s", place->source);
	expect_verdict(place, LAUNCH_ARCHIVE_NONE);
	assert_int_equal(place->refusals, 0);
}

/* Only what a template has sealed, whole, is kept. */
static void not_kept(void **state)
{
	static const struct launch_archive none = {.magic = "another1", .size = sizeof none},
					   beyond = {.magic = LAUNCH_ARCHIVE_MAGIC, .size = 1000};
	struct place *place = *state;
	struct archive *archive = begin(place, LAUNCH_ARCHIVE_WANTED);

	fill(place, archive_store(archive));
	end(archive); /* not sealed */
	archive = begin(place, LAUNCH_ARCHIVE_WANTED);
	seal(archive_store(archive));
	end(archive); /* empty */
	archive = begin(place, LAUNCH_ARCHIVE_WANTED);
	put(archive_store(archive), "short", 5);
	seal(archive_store(archive));
	end(archive);
	archive = begin(place, LAUNCH_ARCHIVE_WANTED);
	put(archive_store(archive), &none, sizeof none);
	seal(archive_store(archive));
	end(archive);
	archive = begin(place, LAUNCH_ARCHIVE_WANTED);
	put(archive_store(archive), &beyond, sizeof beyond);
	seal(archive_store(archive));
	end(archive);
	expect_files(place, 0);
}

/* Wherever a bit of it turned: in its head, its modules, its index, its stamps, its sum. */
static void damaged(void **state)
{
	struct place *place = *state;
	auto_free char *path = keep_one(place);
	struct stat st;
	off_t i;

	assert_false(stat(path, &st));
	for (i = 0; i < st.st_size; i++) {
		flip(path, i);
		expect_verdict(place, LAUNCH_ARCHIVE_WANTED);
		flip(path, i);
	}
	expect_verdict(place, LAUNCH_ARCHIVE_GIVEN);
	assert_int_equal(place->refusals, 0);
}

static void truncated_or_longer(void **state)
{
	struct place *place = *state;
	auto_free char *path = keep_one(place);
	struct stat st;
	off_t size;

	assert_false(stat(path, &st));
	assert_false(truncate(path, st.st_size + 1));
	expect_verdict(place, LAUNCH_ARCHIVE_WANTED);
	for (size = st.st_size - 1; size >= 0; size -= size > 64 ? 61 : 1) {
		assert_false(truncate(path, size));
		expect_verdict(place, LAUNCH_ARCHIVE_WANTED);
	}
	assert_false(truncate(path, ((off_t)256 << 20) + 1)); /* a hole, and too large */
	expect_verdict(place, LAUNCH_ARCHIVE_WANTED);
	keep(place); /* another takes its place */
}

/* Until it is killed. */
static void truncate_and_restore(const char *path, const char *bytes, size_t size)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		if (ftruncate(fd, 100) || pwrite(fd, bytes, size, 0) < 0)
			_exit(1);
}

/* A read of a mapping beyond the end of its file ends a process by SIGBUS. */
static void truncated_while_it_is_read(void **state)
{
	struct place *place = *state;
	auto_free char *path = keep_one(place), *bytes = xcalloc(1, LARGE);
	struct launch_archive head = {.magic = LAUNCH_ARCHIVE_MAGIC, .size = LARGE - 8};
	struct rlmd_error err = {0};
	struct archive *archive;
	pid_t child;
	int i;

	memcpy(bytes, &head, sizeof head);
	write_file(path, bytes, LARGE);
	child = fork();
	if (!child)
		truncate_and_restore(path, bytes, LARGE);
	archive = open_archive(place);
	for (i = 0; i < 200; i++) {
		assert_true(archive_begin(archive, &err));
		assert_int_equal(archive_judge(archive), LAUNCH_ARCHIVE_WANTED);
	}
	archive_free(archive);
	assert_false(kill(child, SIGKILL));
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Sources that were written, or came, or went. */
static void stale(void **state)
{
	struct place *place = *state;
	auto_free char *missing = xasprintf("%s/missing.py", place->root);
	struct timeval times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

	keep(place);
	assert_false(utimes(place->source, times));
	expect_verdict(place, LAUNCH_ARCHIVE_WANTED);
	keep(place);
	write_text(place->source, "value = 12\n");
	assert_false(utimes(place->source, times)); /* another size, the same time */
	expect_verdict(place, LAUNCH_ARCHIVE_WANTED);
	keep(place);
	write_text(missing, "");
	expect_verdict(place, LAUNCH_ARCHIVE_WANTED);
	unlink(missing);
	expect_verdict(place, LAUNCH_ARCHIVE_GIVEN);
	unlink(place->source);
	expect_verdict(place, LAUNCH_ARCHIVE_WANTED);
}

/* Stamps that end before their path does, with a sum that is right. */
static void stamps_cut_short(void **state)
{
	struct place *place = *state;
	struct launch_archive head = {.magic = LAUNCH_ARCHIVE_MAGIC};
	size_t sizes[] = {3, 2 * sizeof(uint64_t), 2 * sizeof(uint64_t) + 4}, i;

	for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct archive *archive = begin(place, LAUNCH_ARCHIVE_WANTED);

		head.index = head.stamps = sizeof head;
		head.size = sizeof head + sizes[i];
		put(archive_store(archive), &head, sizeof head);
		put(archive_store(archive), "0123456789012345path", sizes[i]);
		seal(archive_store(archive));
		end(archive);
		expect_files(place, 1);
	}
	expect_verdict(place, LAUNCH_ARCHIVE_WANTED);
}

static void expect_refusal(struct place *place, uint32_t verdict, const char *in_text)
{
	place->refusals = 0;
	expect_verdict(place, verdict);
	assert_int_equal(place->refusals, 1);
	if (!strstr(place->refusal, "loaded one by one") || !strstr(place->refusal, in_text))
		fail_msg("unexpected text: %s", place->refusal);
}

/* Where others may write: the file, its directory, the one above. */
static void writable_by_others(void **state)
{
	struct place *place = *state;
	auto_free char *path = keep_one(place);
	const struct {
		const char *path;
		uint32_t verdict;
	} places[] = {
		{path, LAUNCH_ARCHIVE_WANTED},
		{place->rlmd, LAUNCH_ARCHIVE_NONE},
		{place->cache, LAUNCH_ARCHIVE_NONE},
	};

	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		auto_free char *remedy = xasprintf("chmod go-w %s", places[i].path);

		assert_false(chmod(places[i].path, 0720));
		expect_refusal(place, places[i].verdict, remedy);
		assert_false(chmod(places[i].path, 0702));
		expect_refusal(place, places[i].verdict, remedy);
		assert_false(chmod(places[i].path, 0700));
		expect_verdict(place, LAUNCH_ARCHIVE_GIVEN);
	}
}

static void of_another_owner(void **state)
{
	struct place *place = *state;
	auto_free char *path = keep_one(place);

	if (geteuid()) {
		print_message("# only root can make what belongs to a stranger\n");
		return; /* TAP of cmocka's skip() reads as a failure */
	}
	assert_false(chown(path, NOBODY, (gid_t)-1));
	expect_refusal(place, LAUNCH_ARCHIVE_WANTED, "belongs to another user");
	assert_false(chown(path, 0, (gid_t)-1));
	assert_false(chown(place->rlmd, NOBODY, (gid_t)-1));
	expect_refusal(place, LAUNCH_ARCHIVE_NONE, "belongs to another user");
	assert_false(chown(place->rlmd, 0, (gid_t)-1));
	assert_false(chown(place->cache, NOBODY, (gid_t)-1));
	expect_refusal(place, LAUNCH_ARCHIVE_NONE, "belongs to another user");
}

/* Whether an archive was kept, and what there is in a directory afterwards. */
static void expect_kept(struct place *place, bool kept, const char *directory, int entries)
{
	auto_free char *rlmd = xasprintf("%s/rlmd", directory);

	place->refusals = 0;
	end(begin(place, kept ? LAUNCH_ARCHIVE_WANTED : LAUNCH_ARCHIVE_NONE));
	assert_int_equal(place->refusals, !kept);
	assert_int_equal(!access(rlmd, F_OK), entries);
}

/* HOME is another user's, as sudo leaves it: whatever link he lays, root makes nothing there. */
static void in_the_home_of_another(void **state)
{
	struct place *place = *state;
	auto_free char *home = xasprintf("%s/home", place->root);
	auto_free char *roots = xasprintf("%s/roots", place->root);

	if (geteuid()) {
		print_message("# only root can make what belongs to a stranger\n");
		return;
	}
	assert_false(mkdir(home, 0755) || mkdir(roots, 0700));
	snprintf(place->cache, sizeof place->cache, "%s/.cache", home);
	snprintf(place->rlmd, sizeof place->rlmd, "%s/rlmd", place->cache);
	assert_false(symlink(roots, place->cache));
	expect_kept(place, true, roots, 1); /* a link of one's own is good */
	assert_false(lchown(place->cache, NOBODY, NOBODY));
	remove_all(place->rlmd);
	expect_kept(place, false, roots, 0);
	assert_false(lchown(place->cache, 0, 0) || chown(home, NOBODY, NOBODY));
	expect_kept(place, false, roots, 0);
	assert_false(unlink(place->cache));
	expect_kept(place, false, home, 0);
	assert_int_equal(access(place->cache, F_OK), -1);
	assert_false(chown(home, 0, 0) || chmod(home, 0777)); /* others may put links there */
	expect_kept(place, false, place->cache, 0);
	assert_false(chmod(home, 01777));
	expect_kept(place, true, place->cache, 1);
}

/* Links, and what is no file, are passed over. An archive of one's own takes the place of a link.
 */
static void links_and_other_things(void **state)
{
	struct place *place = *state;
	auto_free char *path = keep_one(place), *other = xasprintf("%s/other", place->root);
	struct stat st;

	assert_false(rename(path, other));
	assert_false(symlink(other, path));
	keep(place);
	assert_false(lstat(path, &st));
	assert_true(S_ISREG(st.st_mode));
	unlink(path);
	assert_false(mkfifo(path, 0600)); /* nobody waits for a writer, nor replaces it */
	for (int round = 0; round < 2; round++) {
		struct archive *archive = begin(place, LAUNCH_ARCHIVE_WANTED);

		fill(place, archive_store(archive));
		seal(archive_store(archive));
		end(archive);
		assert_false(lstat(path, &st));
		assert_true(S_ISFIFO(st.st_mode));
	}
	unlink(path);
	assert_false(mkdir(path, 0700));
	expect_verdict(place, LAUNCH_ARCHIVE_WANTED);
	rmdir(path);
	assert_false(rmdir(place->rlmd));
	assert_false(symlink(place->root, place->rlmd));
	expect_verdict(place, LAUNCH_ARCHIVE_NONE);
}

/*
 * Between the look at the directory and its use another one, or a link, is put in its place: what
 * was looked at is read and written to, and the other one is not.
 */
static void directory_swapped_after_the_check(void **state)
{
	struct place *place = *state;
	auto_free char *path = keep_one(place), *aside = xasprintf("%s/aside", place->cache);
	auto_free char *kept = xasprintf("%s%s", aside, path + strlen(place->rlmd));
	struct archive *archive;
	struct rlmd_error err = {0};
	struct stat ours, theirs;

	assert_false(stat(path, &ours));
	for (int by_link = 0; by_link < 2; by_link++) {
		archive = open_archive(place);
		assert_false(rename(place->rlmd, aside));
		assert_false(by_link ? symlink(place->root, place->rlmd)
				     : mkdir(place->rlmd, 0777));
		assert_true(archive_begin(archive, &err));
		assert_false(fstat(archive_file(archive), &theirs));
		assert_int_equal(theirs.st_ino, ours.st_ino);
		assert_int_equal(archive_judge(archive), LAUNCH_ARCHIVE_GIVEN);

		assert_false(unlink(kept));
		assert_true(archive_begin(archive, &err));
		assert_int_equal(archive_judge(archive), LAUNCH_ARCHIVE_WANTED);
		fill(place, archive_store(archive));
		seal(archive_store(archive));
		end(archive);
		assert_false(stat(kept, &ours));
		assert_int_equal(by_link ? unlink(place->rlmd) : rmdir(place->rlmd), 0); /* empty */
		assert_false(rename(aside, place->rlmd));
	}
	expect_verdict(place, LAUNCH_ARCHIVE_GIVEN);
}

/* A link in the place of the cache itself is the user's own business. */
static void cache_may_be_a_link(void **state)
{
	struct place *place = *state;
	auto_free char *real = xasprintf("%s/real", place->root);

	assert_false(mkdir(real, 0700));
	assert_false(symlink(real, place->cache));
	keep(place);
}

static void of_another_interpreter(void **state)
{
	struct place *place = *state;
	struct rlmd_error err;
	struct archive *archive;

	keep(place);
	archive = archive_new(place->cache, place->python, "/other/start.py", &place->log);
	assert_true(archive_begin(archive, &err));
	assert_int_equal(archive_judge(archive), LAUNCH_ARCHIVE_WANTED);
	archive_free(archive);
	write_text(place->python, "an upgraded interpreter");
	expect_verdict(place, LAUNCH_ARCHIVE_WANTED);
	unlink(place->python);
	expect_verdict(place, LAUNCH_ARCHIVE_WANTED);
}

/* Eight stay; what goes is the oldest, and nothing but archives. */
static void too_many(void **state)
{
	struct place *place = *state;
	auto_free char *strange = xasprintf("%s/strange", place->rlmd);
	struct timeval times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	int i;

	expect_verdict(place, LAUNCH_ARCHIVE_WANTED); /* makes the directory */
	write_text(strange, "");
	assert_false(utimes(strange, times));
	for (i = 0; i < 8; i++) {
		auto_free char *name = xasprintf("%s/library-%d", place->rlmd, i);

		times[0].tv_sec = times[1].tv_sec = 1000 + (i + 3) % 8;
		write_text(name, "of another");
		assert_false(utimes(name, times));
	}
	keep(place);
	expect_files(place, 9);
	for (i = 0; i < 8; i++) {
		auto_free char *name = xasprintf("%s/library-%d", place->rlmd, i);

		assert_int_equal(access(name, F_OK), i == 5 ? -1 : 0);
	}
	assert_int_equal(access(strange, F_OK), 0);
}

/* Where nothing can be written nothing is lost: as an ordinary user, for root may write. */
static void read_only(void **state)
{
	struct place *place = *state;
	struct archive *archive = begin(place, LAUNCH_ARCHIVE_WANTED);
	bool root = !geteuid();

	fill(place, archive_store(archive));
	seal(archive_store(archive));
	if (root) {
		assert_false(chmod(place->root, 0755));
		assert_false(chmod(place->cache, 0755));
	}
	assert_false(chmod(place->rlmd, 0555));
	assert_false(root && seteuid(NOBODY));
	archive_keep(archive);
	assert_false(root && seteuid(0));
	expect_files(place, 0);
	assert_false(chmod(place->rlmd, 0700));
	assert_int_equal(archive_verdict(archive), LAUNCH_ARCHIVE_NONE);
	archive_free(archive);
	keep(place);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)
	const struct CMUnitTest tests[] = {
		TEST(kept_and_read_back),
		TEST(begun_again),
		TEST(shipped),
		TEST(copied_with_its_sources),
		TEST(no_home),
		TEST(not_kept),
		TEST(damaged),
		TEST(truncated_or_longer),
		TEST(truncated_while_it_is_read),
		TEST(stale),
		TEST(stamps_cut_short),
		TEST(writable_by_others),
		TEST(of_another_owner),
		TEST(in_the_home_of_another),
		TEST(links_and_other_things),
		TEST(directory_swapped_after_the_check),
		TEST(cache_may_be_a_link),
		TEST(of_another_interpreter),
		TEST(too_many),
		TEST(read_only),
	};

	alloc_install();
	return cmocka_run_group_tests_name("archive", tests, NULL, NULL);
}
