/*
 * Runs a fuzz target over the files of a directory, for builds without libFuzzer.
 * A directory that is missing or empty is a failure: nothing would have been tested.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool replay(const char *directory, const char *name)
{
	auto_free char *path = xasprintf("%s/%s", directory, name);
	auto_free char *bytes = NULL;
	struct rlmd_error err;
	size_t size;

	bytes = file_read(path, 16 << 20, &size, &err);
	if (bytes)
		LLVMFuzzerTestOneInput((const uint8_t *)bytes, size);
	else
		fprintf(stderr, "%s\n", err.text);
	return bytes;
}

int main(int argc, char **argv)
{
	DIR *directory = argc == 2 ? opendir(argv[1]) : NULL;
	struct dirent *entry;
	int count = 0;

	while (directory && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		if (!replay(argv[1], entry->d_name))
			return EXIT_FAILURE;
		count++;
	}
	if (directory)
		closedir(directory);
	printf("%d files\n", count);
	return count ? EXIT_SUCCESS : EXIT_FAILURE;
}
