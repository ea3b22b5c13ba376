#include "cli/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic_file.h"
#include "base/cleanup.h"
#include "base/file.h"

struct sink {
	char *path;              /* owned: as messages call it */
	struct atomic_file file; /* unless it is written in place */
	int fd;                  /* the file's; or else owned, but for standard output */
	bool in_place;
};

/* Uses a descriptor that was opened for us as it stands, without opening it again at its
 * beginning. One that an exec would close was not opened for us: it is our own. */
static int use_descriptor(int fd)
{
	int flags = fcntl(fd, F_GETFL), own = fcntl(fd, F_GETFD);

	if (own < 0 || own & FD_CLOEXEC || (flags & O_ACCMODE) == O_RDONLY) {
		errno = EBADF;
		return -1;
	}
	return fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

static void open_file(struct sink *sink, mode_t mode)
{
	if (atomic_file_open(&sink->file, sink->path, mode))
		sink->fd = sink->file.fd;
}

/* It is still what was looked at, or nothing. */
static void open_in_place(struct sink *sink, const struct stat *seen)
{
	auto_close int fd = open(sink->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_dev == seen->st_dev && st.st_ino == seen->st_ino)
		sink->fd = take_fd(&fd);
	else
		errno = ESTALE;
}

/* A socket takes connections, and nothing can be written to it as to a file. */
static bool may_open(const char *path, struct stat *ret, struct rlmd_error *err)
{
	if (!file_may_write(path, ret, RLMD_ERROR_USAGE, err))
		return error_context(err, "cannot write");
	return file_descriptor_of(path) >= 0 || !S_ISSOCK(ret->st_mode) ||
	       error_set(err, RLMD_ERROR_USAGE,
			 "cannot write %s: it is a socket; name a file, a FIFO or a device", path);
}

/* Where the group cannot be the old file's, it is another group, which gets nothing. */
static void take_mode(int fd, const struct stat *old)
{
	mode_t mode = old->st_mode & 0777;

	if (fchown(fd, (uid_t)-1, old->st_gid))
		mode &= ~(mode_t)S_IRWXG;
	fchmod(fd, mode);
}

struct sink *sink_new(const char *path, bool confidential, struct rlmd_error *err)
{
	bool standard = !path || !strcmp(path, "-");
	struct sink *sink = xcalloc(1, sizeof *sink);
	struct stat st = {0};
	int given;
	bool old;

	sink->path = xstrdup(standard ? "standard output" : path);
	sink->fd = standard ? STDOUT_FILENO : -1;
	if (!standard && !may_open(path, &st, err)) {
		sink_free(sink);
		return NULL;
	}
	old = st.st_mode;
	given = standard ? -1 : file_descriptor_of(path);
	sink->in_place = standard || given >= 0 || (old && !S_ISREG(st.st_mode));
	if (given >= 0)
		sink->fd = use_descriptor(given);
	else if (!sink->in_place)
		open_file(sink, old || confidential ? 0600 : 0666);
	else if (!standard)
		open_in_place(sink, &st);
	if (sink->fd < 0) {
		error_errno(err, RLMD_ERROR_USAGE, "cannot write %s", path);
		sink_free(sink);
		return NULL;
	}
	if (old && !sink->in_place)
		take_mode(sink->fd, &st);
	return sink;
}

void sink_free(struct sink *sink)
{
	if (!sink)
		return;
	if (sink->file.path)
		atomic_file_done(&sink->file);
	else if (sink->fd > STDERR_FILENO)
		close(sink->fd);
	free(sink->path);
	free(sink);
}

bool sink_write(struct sink *sink, struct rlmd_text text, struct rlmd_error *err)
{
	return file_write_fd(sink->fd, text, err) || error_context(err, "%s", sink->path);
}

bool sink_feed(struct sink *sink, struct rlmd_text text, int64_t patience_ms,
	       struct rlmd_error *err)
{
	return file_feed_fd(sink->fd, text, patience_ms, err) ||
	       error_context(err, "%s", sink->path);
}

bool sink_commit(struct sink *sink, bool durable, struct rlmd_error *err)
{
	return sink->in_place || atomic_file_commit(&sink->file, durable) ||
	       error_errno(err, RLMD_ERROR_INTERNAL, "cannot write %s", sink->path);
}

int sink_fd(const struct sink *sink)
{
	return sink->fd;
}

bool sink_reader_gone(const struct sink *sink)
{
	struct pollfd pipe = {.fd = sink->fd};

	return poll(&pipe, 1, 0) == 1 && pipe.revents & POLLERR;
}
