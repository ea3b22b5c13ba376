#include "base/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic_file.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/wait.h"

enum { PATIENCE_SLICE_MS = 1000 };

char *file_read(const char *path, size_t limit, size_t *ret_size, struct rlmd_error *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	auto_free char *bytes = NULL;
	struct stat st;
	size_t size = 0;

	if (fd < 0 || fstat(fd, &st)) {
		error_errno(err, RLMD_ERROR_INPUT, "cannot read %s", path);
		return NULL;
	}
	if (!S_ISREG(st.st_mode)) {
		error_set(err, RLMD_ERROR_INPUT, "cannot read %s: not a regular file", path);
		return NULL;
	}
	if ((size_t)st.st_size > limit) {
		error_set(err, RLMD_ERROR_INPUT, "%s is larger than %zu bytes", path, limit);
		return NULL;
	}
	bytes = xcalloc((size_t)st.st_size + 1, 1);
	while (size < (size_t)st.st_size) {
		ssize_t got = read(fd, bytes + size, (size_t)st.st_size - size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			error_errno(err, RLMD_ERROR_INPUT, "cannot read %s", path);
			return NULL;
		}
		if (!got)
			break;
		size += (size_t)got;
	}
	if (ret_size)
		*ret_size = size;
	return take_pointer(&bytes);
}

static bool give_up(enum wait_end end, struct rlmd_error *err)
{
	switch (end) {
	case WAIT_READY:
		return true;
	case WAIT_LATE:
		return error_limit(err, RLMD_STOP_MAX_TIME,
				   "the time was over before all was read");
	case WAIT_INTERRUPTED:
		return error_set(err, RLMD_ERROR_CANCELLED, "stopped before all was read");
	case WAIT_FAILED:
		break;
	}
	return error_errno(err, RLMD_ERROR_INPUT, "cannot read");
}

bool file_may_go_on(int64_t deadline, struct rlmd_error *err)
{
	return give_up(wait_interrupted()       ? WAIT_INTERRUPTED
		       : clock_ms() >= deadline ? WAIT_LATE
						: WAIT_READY,
		       err);
}

bool file_take_fd(int fd, char *bytes, size_t room, int64_t deadline, size_t *ret_size,
		  struct rlmd_error *err)
{
	for (;;) {
		ssize_t got;

		if (!file_may_go_on(deadline, err) ||
		    !give_up(wait_for(fd, POLLIN, deadline, 0), err))
			return false;
		got = read(fd, bytes, room);
		if (got >= 0) {
			*ret_size = (size_t)got;
			return true;
		}
		if (errno != EAGAIN && errno != EINTR)
			return error_errno(err, RLMD_ERROR_INPUT, "cannot read");
	}
}

/* A pipe that is writable takes so much at once, though it be a blocking one. */
static size_t piece_of(int fd, struct rlmd_text text)
{
	struct stat st;

	if (text.size <= PIPE_BUF || (!fstat(fd, &st) && S_ISREG(st.st_mode)))
		return text.size;
	return PIPE_BUF;
}

/* In slices, so that time for which the program was stopped counts for next to nothing. A reader
 * who is there gets all of it, however many signals have come. */
static bool await_reader(int fd, int64_t patience_ms, int signals, struct rlmd_error *err)
{
	if (wait_for(fd, POLLOUT, 0, INT_MAX) == WAIT_READY)
		return true;
	for (int64_t left = patience_ms; left > 0; left -= PATIENCE_SLICE_MS) {
		int64_t slice = left < PATIENCE_SLICE_MS ? left : PATIENCE_SLICE_MS;

		switch (wait_for(fd, POLLOUT, clock_ms() + slice, signals)) {
		case WAIT_READY:
		case WAIT_FAILED: /* the write will tell */
			return true;
		case WAIT_INTERRUPTED:
			return error_set(err, RLMD_ERROR_CANCELLED,
					 "interrupted while nobody read");
		case WAIT_LATE:
			if (patience_ms == WAIT_FOREVER)
				left = patience_ms;
		}
	}
	return error_set(err, RLMD_ERROR_INTERNAL, "nobody read for %d s",
			 (int)(patience_ms / 1000));
}

static bool write_piece(int fd, struct rlmd_text *text, size_t size, struct rlmd_error *err)
{
	ssize_t written = write(fd, text->bytes, size);

	if (written < 0 && errno != EAGAIN && errno != EINTR)
		return error_errno(err, RLMD_ERROR_INTERNAL, "cannot write");
	if (written > 0)
		*text = text_from(text->bytes + written, text->size - (size_t)written);
	return true;
}

static bool feed(int fd, struct rlmd_text text, int64_t patience_ms, int signals,
		 struct rlmd_error *err)
{
	while (text.size)
		if (!await_reader(fd, patience_ms, signals, err) ||
		    !write_piece(fd, &text, piece_of(fd, text), err))
			return false;
	return true;
}

bool file_write_fd(int fd, struct rlmd_text text, struct rlmd_error *err)
{
	return feed(fd, text, WAIT_FOREVER, wait_interrupted(), err);
}

bool file_write_all(int fd, struct rlmd_text text)
{
	while (text.size) {
		ssize_t written = write(fd, text.bytes, text.size);

		if (written < 0 && errno != EINTR)
			return false;
		if (written > 0)
			text = text_from(text.bytes + written, text.size - (size_t)written);
	}
	return true;
}

bool file_seal(int fd)
{
	const int others = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

	return !fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | others) ||
	       (errno == EINVAL && !fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | others)); /* Linux 5.0 */
}

int file_in_memory(const char *name, struct rlmd_text text, struct rlmd_error *err)
{
	auto_close int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0)
		error_errno(err, RLMD_ERROR_MACHINE, "no memory file for %zu bytes", text.size);
	else if (file_write_fd(fd, text, err) && !lseek(fd, 0, SEEK_SET))
		return take_fd(&fd);
	return -1;
}

bool file_feed_fd(int fd, struct rlmd_text text, int64_t patience_ms, struct rlmd_error *err)
{
	return feed(fd, text, patience_ms, 1, err);
}

static bool is_ours(const struct stat *st, const char *path, enum rlmd_error_kind kind,
		    struct rlmd_error *err)
{
	if (st->st_uid && st->st_uid != geteuid())
		return error_set(err, kind,
				 "%s belongs to another user, who can change it; run: chown %u %s",
				 path, geteuid(), path);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return error_set(err, kind, "others can change %s; run: chmod go-w %s", path, path);
	return true;
}

bool file_is_ours(int fd, const char *path, enum rlmd_error_kind kind, struct rlmd_error *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_errno(err, kind, "cannot read %s", path);
	return is_ours(&st, path, kind, err);
}

char *file_real_path(const char *path)
{
	const char *slash = strrchr(path, '/');
	auto_free char *before = slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");
	auto_free char *directory = realpath(*before ? before : "/", NULL);

	if (!directory)
		return xstrdup(path);
	return xasprintf("%s/%s", strcmp(directory, "/") ? directory : "",
			 slash ? slash + 1 : path);
}

bool file_name_is_ours(const char *path, bool *ret_there, enum rlmd_error_kind kind,
		       struct rlmd_error *err)
{
	struct stat st;

	*ret_there = !lstat(path, &st);
	if (!*ret_there)
		return errno == ENOENT || error_errno(err, kind, "cannot look at %s", path);
	if (S_ISLNK(st.st_mode))
		return error_set(err, kind, "%s is a symbolic link; name the file itself", path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, kind, "%s is no regular file; name another one", path);
	return is_ours(&st, path, kind, err);
}

static bool is_directory_of_ours(int fd, const char *path, const char *what, struct rlmd_error *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_errno(err, RLMD_ERROR_INPUT, "cannot use the %s %s", what, path);
	if (st.st_uid != geteuid())
		return error_set(err, RLMD_ERROR_INPUT,
				 "the %s %s belongs to uid %ju and not to us (%ju), who could put "
				 "files there: name a directory of your own",
				 what, path, (uintmax_t)st.st_uid, (uintmax_t)geteuid());
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return error_set(err, RLMD_ERROR_INPUT,
				 "others may write to the %s %s, and could put files there: chmod "
				 "700 %s",
				 what, path, path);
	return true;
}

int file_own_directory(const char *path, const char *what, struct rlmd_error *err)
{
	auto_close int fd = -1;

	if (mkdir(path, 0700) && errno != EEXIST) {
		error_errno(err, RLMD_ERROR_INPUT, "cannot make the %s %s", what, path);
		return -1;
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		error_errno(err, RLMD_ERROR_INPUT,
			    "cannot use the %s %s, which has to be a directory and no link", what,
			    path);
		return -1;
	}
	return is_directory_of_ours(fd, path, what, err) ? take_fd(&fd) : -1;
}

/* A line is "1: FLOCK  ADVISORY  WRITE 4242 fe:01:131 0 EOF". */
pid_t file_lock_holder(int fd)
{
	auto_file FILE *locks = fopen("/proc/locks", "re");
	uintmax_t inode;
	char line[256];
	struct stat st;
	long pid;

	if (!locks || fstat(fd, &st))
		return 0;
	while (fgets(line, sizeof line, locks))
		if (sscanf(line, "%*s FLOCK ADVISORY %*s %ld %*x:%*x:%ju", &pid, &inode) == 2 &&
		    inode == st.st_ino && pid > 0)
			return (pid_t)pid;
	return 0;
}

int file_descriptor_of(const char *path)
{
	static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
	static const char *const rooms[] = {"/dev/fd/", "/proc/self/fd/"};

	for (int fd = 0; fd < 3; fd++)
		if (!strcmp(path, names[fd]))
			return fd;
	for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
		const char *number = path + strlen(rooms[i]);

		if (text_starts(text_of(path), rooms[i]) && *number && strlen(number) < 8 &&
		    !number[strspn(number, "0123456789")])
			return (int)strtol(number, NULL, 10);
	}
	return -1;
}

static bool is_strangers(const struct stat *st)
{
	return st->st_uid && st->st_uid != geteuid() && !S_ISCHR(st->st_mode) &&
	       !S_ISBLK(st->st_mode);
}

bool file_may_write(const char *path, struct stat *ret, enum rlmd_error_kind kind,
		    struct rlmd_error *err)
{
	struct stat name = {0}, target = {0};

	if (lstat(path, &name))
		name = (struct stat){0};
	if (stat(path, &target))
		target = (struct stat){0};
	if (file_descriptor_of(path) < 0 && (is_strangers(&name) || is_strangers(&target)))
		return error_set(err, kind,
				 "%s belongs to another user, who could read or change it: remove "
				 "it, or name another file",
				 path);
	*ret = target;
	return true;
}

const char *file_kind(const struct stat *st)
{
	return S_ISDIR(st->st_mode)    ? "it is a directory"
	       : S_ISFIFO(st->st_mode) ? "it is a FIFO or a pipe"
	       : S_ISSOCK(st->st_mode) ? "it is a socket"
				       : "it is a device";
}

bool file_write(const char *path, struct rlmd_text text, struct rlmd_error *err)
{
	struct atomic_file file;
	bool ok;

	if (!atomic_file_open(&file, path, 0600))
		return error_errno(err, RLMD_ERROR_INPUT, "cannot write %s", path);
	if (!file_write_fd(file.fd, text, err))
		ok = error_context(err, "%s", path);
	else
		ok = atomic_file_commit(&file, false) ||
		     error_errno(err, RLMD_ERROR_INPUT, "cannot write %s", path);
	atomic_file_done(&file);
	return ok;
}

static const struct room {
	const char *name, *installed;
	const char *of_program, *of_library; /* the same, from where that is installed */
} rooms[] = {
	{"share", RLMD_SHARE_DIR, RLMD_SHARE_FROM_BIN, RLMD_SHARE_FROM_LIB},
	{"worker", RLMD_WORKER_DIR, RLMD_WORKER_FROM_BIN, RLMD_WORKER_FROM_LIB},
	{"helper", RLMD_HELPER_DIR, RLMD_HELPER_FROM_BIN, RLMD_HELPER_FROM_LIB},
};

/* The shared library that this code came in, or else the program; new, NULL: nobody can tell. */
static char *own_path(bool *ret_library)
{
	struct link_map *map = NULL;
	Dl_info info;

	*ret_library = dladdr1(rooms, &info, (void **)&map, RTLD_DL_LINKMAP) && map &&
		       *map->l_name && strstr(map->l_name, "librlmd.so");
	return realpath(*ret_library ? map->l_name : "/proc/self/exe", NULL);
}

/* The first that can be read of a file beside us, and one where it was installed with us. */
static char *find_shipped(const struct room *room, const char *name)
{
	bool library;
	auto_free char *own = own_path(&library), *path = NULL;
	const char *directory = own ? dirname(own) : "/";

	path = xasprintf("%s/%s/%s", directory, room->name, name);
	if (!access(path, R_OK))
		return take_pointer(&path);
	free(path);
	path = xasprintf("%s/%s/%s", directory, library ? room->of_library : room->of_program,
			 name);
	return access(path, R_OK) ? NULL : take_pointer(&path);
}

char *file_shipped(const char *room, const char *name)
{
	const struct room *row = rooms;
	char *found;

	while (strcmp(row->name, room) != 0)
		row++;
	found = find_shipped(row, name);
	return found ? found : xasprintf("%s/%s", row->installed, name);
}

void file_cut_forked(int fd)
{
	int nobody = fd < 0 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return;
	if (nobody < 0 || dup3(nobody, fd, O_CLOEXEC) < 0)
		close(fd);
	if (nobody >= 0)
		close(nobody);
}
