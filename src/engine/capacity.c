#include "engine/capacity.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sandbox/launch.h"

enum {
	OWN_FILES = 16,    /* descriptors that a supervisor has for itself, at least */
	WORKER_FILES = 4,  /* of it for each worker that is alive */
	CALL_FILES = 1,    /* a connection */
	OWN_PROCESSES = 2, /* the supervisor and the template */
	READ_MAX = 4096,   /* bytes of a file of the kernel's */
};

/* That not even an idle worker shares with others. */
#define WORKER_MEMORY (INT64_C(1) << 20)

/* The limit that allows the fewest so far: "HOLDER AMOUNT WHAT". */
struct capacity {
	int64_t most, amount;
	const char *holder, *what; /* static */
};

static void allow(struct capacity *capacity, int64_t most, const char *holder, int64_t amount,
		  const char *what)
{
	if (most < capacity->most)
		*capacity = (struct capacity){most < 0 ? 0 : most, amount, holder, what};
}

/* 0: there is no such limit, or none that we know of. */
static int64_t limit_of(__rlimit_resource_t resource)
{
	struct rlimit limit;

	return getrlimit(resource, &limit) || limit.rlim_cur > INT32_MAX ? 0
									 : (int64_t)limit.rlim_cur;
}

static bool read_file(const char *path, char text[static READ_MAX])
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, text, READ_MAX - 1);

	text[size > 0 ? size : 0] = '\0';
	return size > 0;
}

static int64_t number_in(const char *path)
{
	char text[READ_MAX];
	int64_t number = read_file(path, text) ? strtoll(text, NULL, 10) : 0;

	return number > 0 ? number : 0; /* "max" is none */
}

/* Of the cgroup that we are in: "0::/PATH", or "N:CONTROLLER:/PATH" in the first version. */
static int64_t number_of_cgroup(const char *controller, const char *file)
{
	char text[READ_MAX], path[READ_MAX + 64], key[32];
	const char *line;
	int64_t number = 0;

	if (!read_file("/proc/self/cgroup", text))
		return 0;
	snprintf(key, sizeof key, ":%s:", controller);
	if ((line = strstr(text, key))) {
		line += strlen(key);
		snprintf(path, sizeof path, "/sys/fs/cgroup/%s%.*s/%s", controller,
			 (int)strcspn(line, "\n"), line, file);
		number = number_in(path);
	} else if ((line = strstr(text, "0::"))) {
		line += 3;
		snprintf(path, sizeof path, "/sys/fs/cgroup%.*s/%s", (int)strcspn(line, "\n"), line,
			 file);
		number = number_in(path);
	}
	return number;
}

static void allow_files(struct capacity *capacity, int each)
{
	int64_t files = limit_of(RLIMIT_NOFILE);

	if (files)
		allow(capacity, (files - OWN_FILES) / each, "a process may have", files,
		      "open files (ulimit -n)");
}

static void allow_processes(struct capacity *capacity)
{
	const struct {
		int64_t amount;
		const char *holder, *what;
	} limits[] = {
		{number_in("/proc/sys/kernel/pid_max"), "the kernel has",
		 "process numbers (kernel.pid_max)"},
		{number_in("/proc/sys/kernel/threads-max"), "the kernel allows",
		 "threads (kernel.threads-max)"},
		{number_of_cgroup("pids", "pids.max"), "the cgroup may have",
		 "processes (pids.max)"},
		{geteuid() ? limit_of(RLIMIT_NPROC) : 0, "the user may have",
		 "processes (ulimit -u)"},
		{LAUNCH_THREADS_OF_ALL + OWN_PROCESSES, "all workers together may have", "threads"},
	};

	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
		if (limits[i].amount)
			allow(capacity, limits[i].amount - OWN_PROCESSES, limits[i].holder,
			      limits[i].amount, limits[i].what);
}

static void allow_memory(struct capacity *capacity)
{
	int64_t cgroup = number_of_cgroup("memory", "memory.max");
	struct sysinfo info;

	if (cgroup)
		allow(capacity, cgroup / WORKER_MEMORY, "the cgroup may have", cgroup,
		      "bytes of memory (memory.max)");
	if (!sysinfo(&info))
		allow(capacity, (int64_t)info.totalram * info.mem_unit / WORKER_MEMORY,
		      "the machine has", (int64_t)info.totalram * info.mem_unit, "bytes of memory");
}

static bool refuse(const struct capacity *capacity, size_t wanted, const char *of,
		   struct rlmd_error *err)
{
	return error_set(err, RLMD_ERROR_USAGE,
			 "%zu %s are more than there can be here: at most %" PRId64
			 ", for %s %" PRId64 " %s",
			 wanted, of, capacity->most, capacity->holder, capacity->amount,
			 capacity->what);
}

bool capacity_check(size_t workers, size_t calls, struct rlmd_error *err)
{
	struct capacity of_workers = {.most = INT64_MAX}, of_calls = {.most = INT64_MAX};

	allow_files(&of_workers, WORKER_FILES);
	allow_processes(&of_workers);
	allow_memory(&of_workers);
	if (workers > (uint64_t)of_workers.most)
		return refuse(&of_workers, workers, "workers at once (max-workers)", err);
	allow_files(&of_calls, CALL_FILES);
	if (calls > (uint64_t)of_calls.most)
		return refuse(&of_calls, calls, "model calls at once (max-parallel)", err);
	return true;
}
