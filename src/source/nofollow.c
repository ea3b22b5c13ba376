#include "source/nofollow.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

enum { FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };

/* One name after the other; the last with the flags. */
static int descend(int directory, const char *path, int flags)
{
	auto_close int at = -1;

	for (;;) {
		const char *slash = strchr(path, '/');
		auto_free char *name = slash ? xstrndup(path, (size_t)(slash - path)) : NULL;
		int next;

		if (!strcmp(name ? name : path, ".."))
			return -1;
		next = openat(at < 0 ? directory : at, name ? name : path,
			      slash ? FLAGS | O_DIRECTORY : flags);
		if (next < 0 || !slash)
			return next;
		if (at >= 0)
			close(at);
		at = next;
		path = slash + 1;
	}
}

int nofollow_directory(int directory, const char *path)
{
	return descend(directory, path, FLAGS | O_DIRECTORY);
}

int nofollow_file(int directory, const char *path)
{
	auto_close int fd = descend(directory, path, FLAGS);
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) ? take_fd(&fd) : -1;
}

char *nofollow_read(int directory, const char *path, size_t limit, size_t *ret_size)
{
	auto_close int fd = nofollow_file(directory, path);
	auto_free char *bytes = NULL;
	size_t size = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || (size_t)st.st_size > limit)
		return NULL;
	bytes = xcalloc((size_t)st.st_size + 1, 1);
	while (size < (size_t)st.st_size) {
		ssize_t got = read(fd, bytes + size, (size_t)st.st_size - size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return NULL;
		if (!got)
			break;
		size += (size_t)got;
	}
	*ret_size = size;
	return take_pointer(&bytes);
}
