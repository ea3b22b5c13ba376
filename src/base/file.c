#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

enum { PATIENCE_SLICE_MS = 1000 };

char *file_read(const char *path, size_t limit, size_t *ret_size, struct error *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	auto_free char *bytes = NULL;
	struct stat st;
	size_t size = 0;

	if (fd < 0 || fstat(fd, &st)) {
		error_errno(err, ERROR_INPUT, "cannot read %s", path);
		return NULL;
	}
	if (!S_ISREG(st.st_mode)) {
		error_set(err, ERROR_INPUT, "cannot read %s: not a regular file", path);
		return NULL;
	}
	if ((size_t)st.st_size > limit) {
		error_set(err, ERROR_INPUT, "%s is larger than %zu bytes", path, limit);
		return NULL;
	}
	bytes = xcalloc((size_t)st.st_size + 1, 1);
	while (size < (size_t)st.st_size) {
		ssize_t got = read(fd, bytes + size, (size_t)st.st_size - size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			error_errno(err, ERROR_INPUT, "cannot read %s", path);
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

bool file_write_fd(int fd, struct text text, struct error *err)
{
	while (text.size) {
		ssize_t written = write(fd, text.bytes, text.size);

		if (written < 0 && errno == EAGAIN) {
			poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
			continue;
		}
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return error_errno(err, ERROR_INTERNAL, "cannot write");
		text = text_from(text.bytes + written, text.size - (size_t)written);
	}
	return true;
}

/* In slices, so that time for which the program was stopped counts for next to nothing. */
static bool await_reader(int fd, int64_t patience_ms)
{
	struct pollfd reader = {.fd = fd, .events = POLLOUT};

	for (int64_t left = patience_ms; left > 0; left -= PATIENCE_SLICE_MS) {
		int slice = (int)(left < PATIENCE_SLICE_MS ? left : PATIENCE_SLICE_MS);

		if (poll(&reader, 1, slice) > 0)
			return true;
	}
	return false;
}

bool file_feed_fd(int fd, struct text text, int64_t patience_ms, struct error *err)
{
	struct stat st;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return file_write_fd(fd, text, err);
	while (text.size) {
		/* A pipe that is writable takes so much at once, though it be a blocking one. */
		size_t size = text.size < PIPE_BUF ? text.size : PIPE_BUF;

		if (!await_reader(fd, patience_ms))
			return error_set(err, ERROR_INTERNAL, "nobody read for %d s",
					 (int)(patience_ms / 1000));
		if (!file_write_fd(fd, text_from(text.bytes, size), err))
			return false;
		text = text_from(text.bytes + size, text.size - size);
	}
	return true;
}

bool file_is_ours(int fd, const char *path, enum error_kind kind, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_errno(err, kind, "cannot read %s", path);
	if (st.st_uid && st.st_uid != geteuid())
		return error_set(err, kind,
				 "%s belongs to another user, who can change it; run: chown %u %s",
				 path, geteuid(), path);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return error_set(err, kind, "others can change %s; run: chmod go-w %s", path, path);
	return true;
}

bool file_write(const char *path, struct text text, struct error *err)
{
	auto_free char *temporary = xasprintf("%s.XXXXXX", path);
	auto_close int fd = mkostemp(temporary, O_CLOEXEC);

	if (fd < 0)
		return error_errno(err, ERROR_INPUT, "cannot write %s", path);
	if (file_write_fd(fd, text, err) &&
	    (!rename(temporary, path) || error_errno(err, ERROR_INPUT, "cannot write")))
		return true;
	unlink(temporary);
	return error_context(err, "%s", path);
}

char *file_shipped(const char *room, const char *name)
{
	const char *installed = strcmp(room, "worker") ? RLMD_SHARE_DIR : RLMD_WORKER_DIR;
	char exe[PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", exe, sizeof exe - 1);
	auto_free char *beside = NULL;

	if (size > 0) {
		exe[size] = '\0';
		beside = xasprintf("%s/%s/%s", dirname(exe), room, name);
		if (!access(beside, R_OK))
			return take_pointer(&beside);
	}
	return xasprintf("%s/%s", installed, name);
}
