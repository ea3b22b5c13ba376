#include "sandbox/threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define EXITING 4UL /* the kernel's PF_EXITING */

/* Neither on its way out, nor about to hear that it was killed. */
static bool goes_on(int directory, const char *thread)
{
	char path[64], content[1024] = "";
	unsigned long flags = EXITING, pending = 0;
	auto_close int fd = -1;
	const char *rest;

	snprintf(path, sizeof path, "%.20s/stat", thread);
	fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, content, sizeof content - 1) <= 0)
		return false;
	rest = strrchr(content, ')'); /* the name may have anything in it */
	if (!rest || sscanf(rest,
			    ") %*s %*s %*s %*s %*s %*s %lu %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
			    " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu",
			    &flags, &pending) != 2)
		return false;
	return !(flags & EXITING) && !(pending & 1UL << (SIGKILL - 1));
}

bool threads_go_on(pid_t pid, int64_t count)
{
	const struct dirent *entry;
	char path[32], first[16];
	bool found = false;
	DIR *tasks;

	snprintf(path, sizeof path, "/proc/%d/task", pid);
	snprintf(first, sizeof first, "%d", pid);
	tasks = opendir(path);
	if (!tasks)
		return count > 1;
	while (!found && (entry = readdir(tasks)))
		found = *entry->d_name != '.' && strcmp(entry->d_name, first) != 0 &&
			goes_on(dirfd(tasks), entry->d_name);
	closedir(tasks);
	return found;
}
