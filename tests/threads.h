/*
 * tests/threads.h - the end of threads that nothing joins, such as free a large memory file
 * (base/memfile): one that still runs at the end of a test's process is a leak to memcheck.
 */
#pragma once

#include <dirent.h>
#include <unistd.h>

/* cmocka's teardown of a group: waits until this thread is the only one. */
static inline int threads_end(void **state)
{
	int entries = 0;

	(void)state;
	while (entries != 3) { /* ".", ".." and our own */
		DIR *tasks = opendir("/proc/self/task");

		if (!tasks)
			return -1;
		for (entries = 0; readdir(tasks);)
			entries++;
		closedir(tasks);
		usleep(1000);
	}
	return 0;
}
