#include "sandbox/procfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { STATUS_MAX = 8 << 10 };

/* "\nField:\t  123 kB"; 0 where there is no such line. */
static int64_t field(const char *content, const char *name)
{
	const char *line = strstr(content, name);

	return line ? strtoll(line + strlen(name), NULL, 10) : 0;
}

struct procfs_status procfs_parse(const char *content)
{
	return (struct procfs_status){
		.memory = (field(content, "\nRssAnon:") + field(content, "\nVmSwap:")) * 1024,
		.threads = field(content, "\nThreads:"),
	};
}

bool procfs_read(int status, struct procfs_status *ret_status)
{
	char content[STATUS_MAX];
	ssize_t size = pread(status, content, sizeof content - 1, 0);

	if (size <= 0)
		return false;
	content[size] = '\0';
	*ret_status = procfs_parse(content);
	return true;
}

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

bool procfs_threads_go_on(pid_t pid, int64_t count)
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
