#include "sandbox/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { TRIES = 100, PAUSE_NS = 1000000 };

/* Whether the directory that we hold is still the one of that name. */
static bool is_the_same(int fd, const char *path)
{
	struct stat held, named;

	return !fstat(fd, &held) && !stat(path, &named) && held.st_dev == named.st_dev &&
	       held.st_ino == named.st_ino;
}

/* -1 and errno; ENOENT or EWOULDBLOCK where a sweep came between, which is worth another try. */
static int try_claim(const char *path)
{
	auto_close int fd = -1;

	if (mkdir(path, 0755) && errno != EEXIST)
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB))
		return -1;
	errno = ENOENT;
	return is_the_same(fd, path) ? take_fd(&fd) : -1;
}

int claim_make(const char *path)
{
	for (int i = 0; i < TRIES; i++) {
		int fd = try_claim(path);

		if (fd >= 0 || (errno != ENOENT && errno != EWOULDBLOCK))
			return fd;
		/* Not for somebody who keeps it: a sweep is over at once. */
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
	}
	return -1;
}

bool claim_sweep(int parent, const char *name)
{
	auto_close int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && !unlinkat(parent, name, AT_REMOVEDIR);
}
