/*
 * library/left.h - what this process has: to be the same before and after.
 */
#pragma once

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Without the one that it takes to count them. */
static inline size_t descriptors_open(void)
{
	DIR *directory = opendir("/proc/self/fd");
	size_t count = 0;

	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* Templates and workers, of all engines: our children, and not theirs. */
static inline size_t children_alive(void)
{
	DIR *directory = opendir("/proc");
	const struct dirent *entry;
	size_t count = 0;

	while ((entry = readdir(directory))) {
		char path[300];
		int parent = -1;
		char state = 'Z';
		FILE *file;

		snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
		file = atoi(entry->d_name) > 0 ? fopen(path, "re") : NULL;
		if (!file)
			continue;
		if (fscanf(file, "%*d (%*[^)]) %c %d", &state, &parent) == 2)
			count += parent == getpid() && state != 'Z';
		fclose(file);
	}
	closedir(directory);
	return count;
}
