#include "batch/confine.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"

static bool is_in(const char *directory, const char *path)
{
	size_t size = strlen(directory);

	while (size && directory[size - 1] == '/')
		size--;
	return !strncmp(path, directory, size) && (!path[size] || path[size] == '/');
}

/* The same path without "." and "..", by its words alone, new; absolute ones only. */
static char *plain(const char *path)
{
	auto_free char *copy = xstrdup(path);
	char *ret = xcalloc(1, strlen(path) + 2), *rest = copy, *name;
	size_t used = 0;

	while ((name = strsep(&rest, "/"))) {
		size_t size = strlen(name);

		if (!size || !strcmp(name, "."))
			continue;
		if (!strcmp(name, "..")) {
			while (used && ret[--used] != '/')
				continue;
			continue;
		}
		ret[used++] = '/';
		memcpy(ret + used, name, size);
		used += size;
	}
	if (!used)
		ret[used++] = '/';
	ret[used] = '\0';
	return ret;
}

static bool refuse(const char *directory, const char *path, const char *lifts,
		   struct rlmd_error *err)
{
	return error_set(err, RLMD_ERROR_INPUT,
			 "%.200s: this job may be about files in %.200s only; %s lifts that", path,
			 directory, lifts);
}

/* As it is written it may be relative to where we are, or lead there by the directory's links. */
static bool is_meant(const char *directory, const char *real, const char *path)
{
	auto_free char *here = realpath(".", NULL);
	auto_free char *from = xasprintf("%s/%s", here ? here : "", directory);
	auto_free char *to = xasprintf("%s/%s", here ? here : "", path);
	auto_free char *root = plain(*directory == '/' ? directory : from);
	auto_free char *meant = plain(*path == '/' ? path : to);

	return is_in(root, meant) || is_in(real, meant);
}

char *confine(const char *directory, const char *path, const char *lifts, struct rlmd_error *err)
{
	auto_free char *real = realpath(directory, NULL);
	auto_free char *found = NULL;

	if (!real) {
		error_errno(err, RLMD_ERROR_INPUT, "%.200s", directory);
		return NULL;
	}
	if (!strncmp(path, "git:", 4) || !is_meant(directory, real, path)) {
		refuse(directory, path, lifts, err);
		return NULL;
	}
	found = realpath(path, NULL);
	if (!found)
		error_errno(err, RLMD_ERROR_INPUT, "%.200s", path);
	else if (!is_in(real, found))
		refuse(directory, path, lifts, err);
	else
		return take_pointer(&found);
	return NULL;
}
