#include "batch/concurrency.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/number.h"

enum { LINE_SIZE = 512, LIMIT_DIGITS = 18, FRESH_MS = 100 };

const struct concurrency_roots concurrency_here = {"/proc", "/sys/fs/cgroup"};

/* The two ways in which the kernel has told of a cgroup's memory. */
struct telling {
	const char *controller; /* in /proc/self/cgroup: "" or "memory" */
	const char *room;       /* below the cgroups' root */
	const char *limit, *usage, *cache;
};

static const struct telling tellings[] = {
	{"", "", "memory.max", "memory.current", "inactive_file"},
	{"", "/unified", "memory.max", "memory.current", "inactive_file"},
	{"memory", "/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
	 "total_inactive_file"},
};

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The number behind `name` in a file of lines; or, where that is NULL, the file's only one. */
static int64_t number_in(const char *path, const char *name, int64_t otherwise)
{
	auto_file FILE *file = fopen(path, "re");
	char line[LINE_SIZE];
	size_t size = name ? strlen(name) : 0;

	while (file && fgets(line, sizeof line, file)) {
		const char *at = line + size;

		if (name && (strncmp(line, name, size) || !strchr(": \t", *at)))
			continue;
		at += strspn(at, ": \t");
		size = strspn(at, "0123456789");
		return size && size <= LIMIT_DIGITS ? strtoll(at, NULL, 10) : otherwise;
	}
	return otherwise;
}

static int64_t number_of(const char *directory, const char *file, const char *name,
			 int64_t otherwise)
{
	auto_free char *path = xasprintf("%s/%s", directory, file);

	return number_in(path, name, otherwise);
}

static int64_t left_of(const char *directory, const struct telling *telling)
{
	int64_t limit = number_of(directory, telling->limit, NULL, INT64_MAX), used;

	if (limit == INT64_MAX)
		return INT64_MAX;
	used = number_of(directory, telling->usage, NULL, 0) -
	       number_of(directory, "memory.stat", telling->cache, 0);
	return used < limit ? limit - used : 0;
}

/* Of a cgroup and of all above it. */
static int64_t left_along(const char *room, char *path, const struct telling *telling)
{
	int64_t left = INT64_MAX;

	for (;;) {
		auto_free char *directory = xasprintf("%s%s", room, path);
		char *slash = strrchr(path, '/');

		left = least(left, left_of(directory, telling));
		if (!slash)
			return left;
		*slash = '\0';
	}
}

static int64_t left_by(const struct concurrency_roots *roots, const char *controllers,
		       const char *path)
{
	int64_t left = INT64_MAX;

	for (size_t i = 0; i < sizeof tellings / sizeof *tellings; i++) {
		auto_free char *room = xasprintf("%s%s", roots->cgroups, tellings[i].room);
		auto_free char *below = xstrdup(path);

		if (!strcmp(controllers, tellings[i].controller))
			left = least(left, left_along(room, below, &tellings[i]));
	}
	return left;
}

/* "4:memory:/a/b", "0::/a/b". */
static int64_t left_in_line(const struct concurrency_roots *roots, char *line)
{
	char *rest = line, *controllers;

	line[strcspn(line, "\n")] = '\0';
	strsep(&rest, ":");
	controllers = strsep(&rest, ":");
	return controllers && rest ? left_by(roots, controllers, rest) : INT64_MAX;
}

int64_t concurrency_bytes(const struct concurrency_roots *roots)
{
	auto_free char *memory = xasprintf("%s/meminfo", roots->proc);
	auto_free char *own = xasprintf("%s/self/cgroup", roots->proc);
	auto_file FILE *file = fopen(own, "re");
	int64_t left = number_in(memory, "MemAvailable", -1);
	char line[LINE_SIZE];

	left = left < 0 ? INT64_MAX : left << 10;
	while (file && fgets(line, sizeof line, file))
		left = least(left, left_in_line(roots, line));
	return left;
}

bool concurrency_admits(struct concurrency *concurrency, int64_t now_ms)
{
	if (!concurrency->reserve)
		return true;
	if (!concurrency->looked_ms || now_ms - concurrency->looked_ms >= FRESH_MS) {
		concurrency->bytes = concurrency_bytes(concurrency->roots);
		concurrency->begun = 0;
		concurrency->looked_ms = now_ms;
	}
	return concurrency->bytes - concurrency->begun * CONCURRENCY_JOB >= concurrency->reserve;
}

void concurrency_begin(struct concurrency *concurrency)
{
	concurrency->begun++;
}

char *concurrency_open(struct concurrency *concurrency, int64_t reserve, int64_t jobs)
{
	struct rlimit limit;
	int64_t most;

	*concurrency = (struct concurrency){.roots = &concurrency_here, .reserve = reserve};
	concurrency->max = concurrency->limit = jobs;
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > INT32_MAX)
		return NULL;
	most = ((int64_t)limit.rlim_cur - CONCURRENCY_OWN_FILES) / CONCURRENCY_JOB_FILES;
	if (most >= jobs)
		return NULL;
	concurrency->max = concurrency->limit = int64_max(most, 1);
	return xasprintf("-j %" PRId64 " is more than there can be here: %" PRId64
			 " at once, for a process may have %ju open files (ulimit -n)",
			 jobs, concurrency->limit, (uintmax_t)limit.rlim_cur);
}

char *concurrency_lower(struct concurrency *concurrency, int64_t at_work,
			const struct rlmd_error *err)
{
	bool warned = concurrency->warned;

	concurrency->limit = int64_max(1, int64_min(concurrency->limit, at_work) - 1);
	concurrency->ended = 0;
	concurrency->warned = true;
	return warned ? NULL
		      : xasprintf("fewer jobs are begun than -j allows, as the machine has too "
				  "little: %s",
				  err->text);
}

void concurrency_raise(struct concurrency *concurrency)
{
	if (++concurrency->ended < concurrency->limit || concurrency->limit >= concurrency->max)
		return;
	concurrency->limit++;
	concurrency->ended = 0;
}
