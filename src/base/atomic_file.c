#include "base/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

static char *directory_of(const char *path)
{
	auto_free char *copy = xstrdup(path);

	return xstrdup(dirname(copy));
}

/* A name beside the path that nobody has, new. */
static char *name_beside(const char *path)
{
	auto_free char *directory = directory_of(path);
	uint64_t random[2];

	while (getrandom(random, sizeof random, 0) != sizeof random)
		; /* interrupted */
	return xasprintf("%s/.rlmd-%016" PRIx64 "%016" PRIx64, directory, random[0], random[1]);
}

/* Whether the file may take the name. A link counts as what it leads to. */
static bool may_replace(int directory, const char *name)
{
	struct stat st;

	if (fstatat(directory, name, &st, 0) || S_ISREG(st.st_mode))
		return true;
	errno = S_ISDIR(st.st_mode) ? EISDIR : EEXIST;
	return false;
}

bool atomic_file_open_in(struct atomic_file *file, int directory, const char *name, mode_t mode)
{
	auto_free char *parent = NULL;
	int why;

	*file = (struct atomic_file){.fd = -1};
	if (!may_replace(directory, name))
		return false;
	parent = directory_of(name);
	*file = (struct atomic_file){.directory = directory, .path = xstrdup(name), .fd = -1};
	/* A file without a name gets one by its entry in /proc. */
	if (!access("/proc/self/fd", X_OK))
		file->fd = openat(directory, parent, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
	if (file->fd >= 0)
		return true;
	file->temporary = name_beside(name);
	file->fd = openat(directory, file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			  mode);
	if (file->fd >= 0)
		return true;
	why = errno;
	free(take_pointer(&file->temporary));
	atomic_file_done(file);
	errno = why;
	return false;
}

bool atomic_file_open(struct atomic_file *file, const char *path, mode_t mode)
{
	return atomic_file_open_in(file, AT_FDCWD, path, mode);
}

static bool link_as(const struct atomic_file *file, const char *name)
{
	char self[32];

	snprintf(self, sizeof self, "/proc/self/fd/%d", file->fd);
	return !linkat(AT_FDCWD, self, file->directory, name, AT_SYMLINK_FOLLOW);
}

/* Gives it a name beside the path, for rename(2) only puts one name in the place of another. */
static bool give_name(struct atomic_file *file)
{
	auto_free char *name = name_beside(file->path);

	if (!link_as(file, name))
		return false;
	file->temporary = take_pointer(&name);
	return true;
}

bool atomic_file_commit(struct atomic_file *file, bool durable)
{
	if ((durable && fsync(file->fd)) || !may_replace(file->directory, file->path))
		return false;
	if (!file->temporary) {
		if (link_as(file, file->path))
			return true;
		if (errno != EEXIST || !give_name(file))
			return false;
	}
	if (renameat(file->directory, file->temporary, file->directory, file->path))
		return false;
	free(take_pointer(&file->temporary));
	return true;
}

void atomic_file_done(struct atomic_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	if (file->temporary)
		unlinkat(file->directory, file->temporary, 0);
	free(file->temporary);
	free(file->path);
	*file = (struct atomic_file){.fd = -1};
}
