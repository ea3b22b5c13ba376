#include "sandbox/archive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic_file.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "sandbox/launch.h"

#define ARCHIVE_MAX  ((uint64_t)256 << 20) /* bytes; the standard library has 12 MiB */
#define ARCHIVES_MAX 8                     /* in a cache: of so many interpreters */
#define NAME_START   "library-"
#define BLOCK        ((size_t)64 << 10) /* bytes read at once; a multiple of 32 */
#define SUM_PRIME    UINT64_C(0x9e3779b185ebca87)
#define STEPS_MAX    256        /* on the way to a cache, with those of links */
#define ABSENT       UINT64_MAX /* in a stamp: the size of what is not there */
#define NANOSECONDS  UINT64_C(1000000000)

struct archive {
	const struct log *log; /* lent, or NULL */
	int directory;         /* owned: the one that was found to be ours, whatever has its name
				* by now; -1: nothing is kept */
	char *path;            /* owned: of the file, for people; NULL likewise */
	char *name;            /* owned: of the file in each directory */
	char *shipped;         /* owned: the one that an installation has, if it has one */
	int file;              /* owned: the archive, if there is one that is ours; else -1 */
	int store;             /* owned: of the last template */
	uint32_t verdict;      /* on the file: LAUNCH_ARCHIVE_* */
};

/* --- where it is ------------------------------------------------------------------- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const unsigned char *byte = bytes;

	while (size--)
		hash = (hash ^ *byte++) * 0x100000001b3; /* FNV-1a */
	return hash;
}

/* Of which interpreter: an upgrade makes another one of it, a copy of the tree (the layer of an
 * image) does not. Its own version is compared when an archive is loaded. */
static uint64_t interpreter_hash(const char *python, const char *script)
{
	uint64_t hash = hash_bytes(0xcbf29ce484222325, python, strlen(python) + 1);
	struct stat st;

	hash = hash_bytes(hash, script, strlen(script) + 1);
	if (!stat(python, &st)) {
		hash = hash_bytes(hash, &st.st_size, sizeof st.st_size);
		hash = hash_bytes(hash, &st.st_mtim.tv_sec, sizeof st.st_mtim.tv_sec);
	}
	return hash;
}

/* Whether nobody else can put a file there, or take it for his own. */
static bool is_ours(const struct archive *archive, int fd, const char *path)
{
	struct rlmd_error why;

	if (file_is_ours(fd, path, RLMD_ERROR_SANDBOX, &why))
		return true;
	log_write(archive->log, LOG_CACHE_REFUSED, LOG_FIELDS(LOG_TEXT("path", path)),
		  "modules are loaded one by one: %s", why.text);
	return false;
}

/* Of a directory or a link on the way to the cache: whether nobody else could have it lead
 * elsewhere. Where uids are mapped, root's files may be somebody's who has no name here. */
static bool is_trusted(const struct stat *st)
{
	struct stat root;

	return st->st_uid == geteuid() || !st->st_uid ||
	       (!stat("/", &root) && st->st_uid == root.st_uid);
}

/* One step further from `at`, which is ours to close: -1 and errno, EPERM where it is not safe. */
static int step(int at, const char *name, struct stat *ret)
{
	auto_close int next = -1;
	struct stat above;

	if (fstat(at, &above))
		return -1;
	if (above.st_mode & S_IWOTH && !(above.st_mode & S_ISVTX)) {
		errno = EPERM;
		return -1;
	}
	next = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0 || fstat(next, ret))
		return -1;
	if (is_trusted(ret))
		return take_fd(&next);
	errno = EPERM;
	return -1;
}

/* The rest of the path behind a link, new; NULL and errno. */
static char *way_of_link(int link, const char *rest)
{
	char target[PATH_MAX];
	ssize_t size = readlinkat(link, "", target, sizeof target);

	return size < 0 ? NULL : xasprintf("%.*s/%s", (int)size, target, rest);
}

/*
 * Opens a directory by a way that only we and root can change, links on it too. The kernel alone
 * would follow anybody's: HOME may be another user's (as sudo leaves it), who may have laid a link
 * to a place where only root can write.
 */
static int walk(const char *path)
{
	auto_close int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_free char *way = xstrdup(path);
	const char *rest = way;

	for (int steps = 0; *(rest += strspn(rest, "/")); steps++) {
		auto_free char *name = xstrndup(rest, strcspn(rest, "/")), *before = NULL;
		struct stat st;
		auto_close int next = steps < STEPS_MAX ? step(at, name, &st) : -1;

		if (next < 0)
			return -1;
		rest += strlen(name);
		if (S_ISLNK(st.st_mode)) {
			before = way;
			way = way_of_link(next, rest);
			rest = way;
			close(take_fd(&next));
			if (way && *way == '/')
				next = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
			else
				next = fcntl(at, F_DUPFD_CLOEXEC, 0);
			if (!way || next < 0)
				return -1;
		}
		close(at);
		at = take_fd(&next);
	}
	return openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The directory, made where it is missing; -1 where there can be none, or others may write there.
 */
static int open_directory(const struct archive *archive, int above, const char *name,
			  const char *path)
{
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
	auto_close int fd = openat(above, name, flags);

	if (fd < 0 && errno == ENOENT && !mkdirat(above, name, 0700))
		fd = openat(above, name, flags);
	return fd >= 0 && is_ours(archive, fd, path) ? take_fd(&fd) : -1;
}

/* The directory for caches, likewise. */
static int open_cache(const struct archive *archive, const char *cache)
{
	auto_free char *copy = xstrdup(cache);
	auto_close int fd = walk(cache), parent = -1;
	char *slash;

	if (fd < 0 && errno == ENOENT) {
		for (size_t size = strlen(copy); size > 1 && copy[size - 1] == '/';)
			copy[--size] = '\0';
		slash = strrchr(copy, '/');
		*slash = '\0';
		parent = walk(copy);
		if (parent >= 0)
			return open_directory(archive, parent, slash + 1, cache);
	}
	if (fd < 0 && errno == EPERM)
		log_write(archive->log, LOG_CACHE_REFUSED, LOG_FIELDS(LOG_TEXT("path", cache)),
			  "modules are loaded one by one: %s, or a directory or link on the way "
			  "there, belongs to another user or can be changed by others",
			  cache);
	return fd >= 0 && is_ours(archive, fd, cache) ? take_fd(&fd) : -1;
}

static void find_directory(struct archive *archive, const char *cache)
{
	auto_close int above = open_cache(archive, cache);
	auto_free char *path = xasprintf("%s/rlmd", cache);

	if (above < 0)
		return;
	archive->directory = open_directory(archive, above, "rlmd", path);
	if (archive->directory < 0)
		return;
	archive->path = xasprintf("%s/%s", path, archive->name);
}

/* Beside the directory of the script: DIR/worker/start.py, DIR/bytecode/NAME. */
static char *shipped_path(const char *script, const char *name)
{
	auto_free char *directory = xstrdup(script);
	char *slash;

	for (int i = 0; i < 2; i++) {
		slash = strrchr(directory, '/');
		if (!slash)
			return NULL;
		*slash = '\0';
	}
	return xasprintf("%s/bytecode/%s", directory, name);
}

struct archive *archive_new(const char *cache, const char *python, const char *script,
			    const struct log *log)
{
	struct archive *archive = xcalloc(1, sizeof *archive);

	archive->log = log;
	archive->directory = archive->file = archive->store = -1;
	archive->name = xasprintf(NAME_START "%016" PRIx64, interpreter_hash(python, script));
	archive->shipped = shipped_path(script, archive->name);
	if (cache)
		find_directory(archive, cache);
	return archive;
}

static void close_both(struct archive *archive)
{
	if (archive->file >= 0)
		close(take_fd(&archive->file));
	if (archive->store >= 0)
		close(take_fd(&archive->store));
}

void archive_free(struct archive *archive)
{
	if (!archive)
		return;
	close_both(archive);
	if (archive->directory >= 0)
		close(archive->directory);
	free(archive->path);
	free(archive->name);
	free(archive->shipped);
	free(archive);
}

static int open_file(const struct archive *archive, int directory, const char *name,
		     const char *path)
{
	static const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	auto_close int fd = openat(directory, name, flags);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || !is_ours(archive, fd, path))
		return -1;
	return take_fd(&fd);
}

bool archive_begin(struct archive *archive, struct rlmd_error *err)
{
	close_both(archive);
	archive->verdict = LAUNCH_ARCHIVE_NONE;
	archive->store = memfd_create("library", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (archive->store < 0)
		return error_errno(err, RLMD_ERROR_SANDBOX, "memfd_create");
	if (archive->path)
		archive->file = open_file(archive, archive->directory, archive->name,
					  archive->path);
	if (archive->file < 0 && archive->shipped)
		archive->file = open_file(archive, AT_FDCWD, archive->shipped, archive->shipped);
	return true;
}

int archive_store(const struct archive *archive)
{
	return archive->store;
}

int archive_file(const struct archive *archive)
{
	return archive->file;
}

/* --- what it is worth ---------------------------------------------------------------- */

/*
 * Of bytes that are damaged, not forged: four sums beside each other, for it is made of
 * all that is read, at each start (12 MiB in 2 ms).
 */
struct checksum {
	uint64_t sums[4], size;
};
#define CHECKSUM_EMPTY ((struct checksum){{1, 2, 3, 4}, 0})

/* Some more of the bytes: a multiple of 32, where they are not the last. */
static void checksum_add(struct checksum *checksum, const char *bytes, size_t size)
{
	uint64_t word, *sums = checksum->sums;
	size_t i;

	checksum->size += size;
	for (; size >= sizeof checksum->sums; size -= sizeof checksum->sums)
		for (i = 0; i < 4; i++, bytes += sizeof word) {
			memcpy(&word, bytes, sizeof word);
			sums[i] = (sums[i] ^ word) * SUM_PRIME;
			sums[i] ^= sums[i] >> 29;
		}
	sums[0] = hash_bytes(sums[0], bytes, size);
}

static uint64_t checksum_end(const struct checksum *checksum)
{
	uint64_t sum = checksum->size;

	for (int i = 0; i < 4; i++)
		sum = (sum ^ checksum->sums[i]) * SUM_PRIME, sum ^= sum >> 32;
	return sum;
}

/* Its head, where `bytes` are those of an archive, be they more. */
static bool read_head(const char *bytes, uint64_t size, struct launch_archive *head)
{
	if (size < sizeof *head)
		return false;
	memcpy(head, bytes, sizeof *head);
	return !memcmp(head->magic, LAUNCH_ARCHIVE_MAGIC, sizeof head->magic) &&
	       head->size <= size && head->stamps <= head->size && head->index <= head->stamps;
}

/* Layers of images keep whole seconds; what is written anew has others. A directory's size is its
 * file system's. */
static bool is_current(const char *path, uint64_t written, uint64_t size)
{
	uint64_t seconds = written / NANOSECONDS, rest = written % NANOSECONDS;
	struct stat st;

	if (stat(path, &st))
		return size == ABSENT;
	return size == (S_ISDIR(st.st_mode) ? 0 : (uint64_t)st.st_size) &&
	       seconds == (uint64_t)st.st_mtim.tv_sec &&
	       (!st.st_mtim.tv_nsec || rest == (uint64_t)st.st_mtim.tv_nsec);
}

/* Each: when it was written, how large it is, its path up to a NUL (worker/gather.py). */
static bool are_current(const char *stamp, const char *end)
{
	while (stamp < end) {
		uint64_t facts[2];
		const char *path = stamp + sizeof facts, *nul;

		if (end - stamp < (ptrdiff_t)sizeof facts)
			return false;
		memcpy(facts, stamp, sizeof facts);
		nul = memchr(path, '\0', (size_t)(end - path));
		if (!nul || !is_current(path, facts[0], facts[1]))
			return false;
		stamp = nul + 1;
	}
	return true;
}

/*
 * Into memory of ours: of a file that is mapped, what somebody cuts off meanwhile kills whoever
 * reads it.
 */
static bool read_at(int fd, void *to, size_t size, uint64_t offset)
{
	return pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

static bool is_whole(int fd, uint64_t size)
{
	auto_free char *block = xcalloc(1, BLOCK);
	struct checksum checksum = CHECKSUM_EMPTY;
	uint64_t at, sum;
	size_t part;

	for (at = 0; at < size; at += part) {
		part = size - at < BLOCK ? size - at : BLOCK;
		if (!read_at(fd, block, part, at))
			return false;
		checksum_add(&checksum, block, part);
	}
	return read_at(fd, &sum, sizeof sum, size) && sum == checksum_end(&checksum);
}

static bool is_sound(int fd)
{
	char start[sizeof(struct launch_archive)];
	auto_free char *stamps = NULL;
	struct launch_archive head;
	uint64_t size;
	struct stat st;

	if (fstat(fd, &st) || (uint64_t)st.st_size > ARCHIVE_MAX ||
	    st.st_size < (off_t)(sizeof start + sizeof(uint64_t)))
		return false;
	size = (uint64_t)st.st_size - sizeof(uint64_t);
	if (!read_at(fd, start, sizeof start, 0) || !read_head(start, size, &head) ||
	    head.size != size || !is_whole(fd, size))
		return false;
	size -= head.stamps;
	stamps = xcalloc(1, size + 1);
	return read_at(fd, stamps, size, head.stamps) && are_current(stamps, stamps + size);
}

uint32_t archive_judge(struct archive *archive)
{
	archive->verdict = archive->path ? LAUNCH_ARCHIVE_WANTED : LAUNCH_ARCHIVE_NONE;
	if (archive->file >= 0 && is_sound(archive->file))
		archive->verdict = LAUNCH_ARCHIVE_GIVEN;
	return archive->verdict;
}

uint32_t archive_verdict(const struct archive *archive)
{
	return archive->verdict;
}

/* --- how it comes about ----------------------------------------------------------------- */

static void write_archive(const struct archive *archive, const char *bytes, uint64_t size)
{
	struct checksum checksum = CHECKSUM_EMPTY;
	struct atomic_file file;
	uint64_t sum;
	struct rlmd_error err;

	checksum_add(&checksum, bytes, size);
	sum = checksum_end(&checksum);
	if (!atomic_file_open_in(&file, archive->directory, archive->name, 0600))
		return;
	if (file_write_fd(file.fd, text_from(bytes, size), &err) &&
	    file_write_fd(file.fd, text_from((const char *)&sum, sizeof sum), &err))
		atomic_file_commit(&file, false); /* what a crash damages is noticed */
	atomic_file_done(&file);
}

/* One was added, so one goes: the oldest, of an interpreter that there may be no more. */
static void forget_oldest(const struct archive *archive)
{
	int fd = openat(archive->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd); /* which takes it, or has no memory */
	auto_free char *oldest = NULL;
	struct timespec time = {0};
	const struct dirent *entry;
	int count = 0;

	while (directory && (entry = readdir(directory))) {
		struct stat st;

		if (strncmp(entry->d_name, NAME_START, strlen(NAME_START)) ||
		    fstatat(dirfd(directory), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (!count++ || st.st_mtim.tv_sec < time.tv_sec) {
			time = st.st_mtim;
			free(oldest);
			oldest = xstrdup(entry->d_name);
		}
	}
	if (count > ARCHIVES_MAX)
		unlinkat(dirfd(directory), oldest, 0);
	if (directory)
		closedir(directory);
	else if (fd >= 0)
		close(fd);
}

/* Sealed, it is what the template gathered before its walls went up, and nothing else since. */
static bool is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_WRITE && seals & F_SEAL_SHRINK;
}

/* NULL where it is none that could be an archive; unmapped by its size. Sealed, so that nobody
 * cuts it short. */
static char *map(int fd, uint64_t *ret_size)
{
	struct stat st;
	char *bytes;

	if (fstat(fd, &st) || st.st_size <= 0 || (uint64_t)st.st_size > ARCHIVE_MAX)
		return NULL;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	*ret_size = (uint64_t)st.st_size;
	return bytes == MAP_FAILED ? NULL : bytes;
}

void archive_keep(struct archive *archive)
{
	struct launch_archive head;
	uint64_t size;
	char *bytes;

	if (archive->verdict != LAUNCH_ARCHIVE_WANTED || !is_sealed(archive->store))
		return;
	archive->verdict = LAUNCH_ARCHIVE_NONE;
	bytes = map(archive->store, &size);
	if (!bytes)
		return;
	if (read_head(bytes, size, &head)) {
		write_archive(archive, bytes, head.size);
		forget_oldest(archive);
	}
	munmap(bytes, size);
}
