#include "sandbox/reopen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Where there is no /proc to open it by, all of it once more. */
static int copy_file(int file)
{
	auto_close int copy = memfd_create("input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	off_t from = 0;
	ssize_t copied = copy < 0 ? -1 : 1;

	while (copied > 0)
		copied = sendfile(copy, file, &from, 1 << 30);
	if (copied < 0 ||
	    fcntl(copy, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
		return -1;
	return take_fd(&copy);
}

int reopen(int file)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 && errno == ENOENT ? copy_file(file) : fd;
}
