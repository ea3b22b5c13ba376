#include "sandbox/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

/* Pid and its namespace, start time, which of ours; and of our own, where we step aside. */
#define NAME  "rlmd-%d-ns%llu-%llu-%u"
#define ASIDE ".supervisor"

enum { MEMBERSHIPS_MAX = 16 << 10, MOUNTS_MAX = 4 << 20, EVENTS_MAX = 4096 };
enum { HOLD_TRIES = 100, HOLD_PAUSE_NS = 1000000 };
enum controller { MEMORY, PIDS, CPU, CONTROLLERS };

static const struct {
	const char *name;
	enum layer layer;
	enum step group, limit, join;
	struct {
		const char *limit, *swap; /* `swap` may be missing */
	} files[2];                       /* v1, unified */
} controllers[CONTROLLERS] = {
	[MEMORY] = {"memory",
		    LAYER_memory_group,
		    STEP_memory_group,
		    STEP_memory_limit,
		    STEP_memory_join,
		    {{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"},
		     {"memory.max", "memory.swap.max"}}},
	[PIDS] = {"pids",
		  LAYER_pids_group,
		  STEP_pids_group,
		  STEP_pids_limit,
		  STEP_pids_join,
		  {{"pids.max", NULL}, {"pids.max", NULL}}},
	[CPU] = {"cpu",
		 LAYER_cpu_group,
		 STEP_cpu_group,
		 STEP_cpu_limit,
		 STEP_cpu_join,
		 {{"cpu.shares", NULL}, {"cpu.weight", NULL}}},
};

struct cgroup {
	char *directories[CONTROLLERS]; /* owned: ours, or NULL */
	int locks[CONTROLLERS];         /* owned: on the directories, or -1 */
	bool unified[CONTROLLERS];
	bool limiting[CONTROLLERS]; /* it stands; a directory that does not goes with the others */
	struct cgroup_limits limits;
	int kills;       /* owned: where the memory's kills are counted, or -1 */
	unsigned number; /* which of this process's */
	char *own;       /* owned: the unified one that we were in when we moved out, or NULL */
	char *aside;     /* owned: the one that we are in since then */
	int hold;        /* owned: on that one, or -1 */
};

/* Whether the directory that we hold is still the one of that name below `parent`, or of a path. */
static bool is_the_same(int fd, int parent, const char *name)
{
	struct stat held, named;

	return !fstat(fd, &held) && !fstatat(parent, name, &named, AT_SYMLINK_NOFOLLOW) &&
	       held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

/* -1 and errno; ENOENT or EWOULDBLOCK where a sweep came between, which is worth another try. */
static int try_to_hold(const char *path)
{
	auto_close int fd = -1;

	if (mkdir(path, 0755) && errno != EEXIST)
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB))
		return -1;
	errno = ENOENT;
	return is_the_same(fd, AT_FDCWD, path) ? take_fd(&fd) : -1;
}

/*
 * Makes the directory, or shares one that is there, and holds a lock on it, which the kernel drops
 * with our last process that has the descriptor. Every process that sees the directory sees the
 * lock, also from another pid namespace, where a pid in its name would say nothing. The descriptor,
 * owned; -1 and errno, EWOULDBLOCK where somebody keeps it locked for himself.
 */
static int hold_directory(const char *path)
{
	for (int i = 0; i < HOLD_TRIES; i++) {
		int fd = try_to_hold(path);

		if (fd >= 0 || (errno != ENOENT && errno != EWOULDBLOCK))
			return fd;
		/* Not for somebody who keeps it: a sweep is over at once. */
		nanosleep(&(struct timespec){.tv_nsec = HOLD_PAUSE_NS}, NULL);
	}
	return -1;
}

/* Removes an empty directory below `parent` that nobody holds, and not another one of its name that
 * was made meanwhile. False and errno. */
static bool remove_unheld(int parent, const char *name)
{
	auto_close int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && is_the_same(fd, parent, name) &&
	       !unlinkat(parent, name, AT_REMOVEDIR);
}

static char *read_small(const char *path, size_t limit)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *content = xcalloc(limit + 1, 1);
	size_t size = 0;
	ssize_t got = fd < 0 ? 0 : 1;

	while (got > 0 && size < limit) {
		got = read(fd, content + size, limit - size);
		size += got > 0 ? (size_t)got : 0;
	}
	return content;
}

/* 0, or -1 and errno. */
static long write_to(const char *directory, const char *name, const char *content)
{
	auto_free char *path = xasprintf("%s/%s", directory, name);
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	return write(fd, content, strlen(content)) == (ssize_t)strlen(content) ? 0 : -1;
}

static struct rlmd_text next_line(struct rlmd_text *rest)
{
	const char *end = rest->size ? memchr(rest->bytes, '\n', rest->size) : NULL;
	size_t size = end ? (size_t)(end - rest->bytes) : rest->size;
	struct rlmd_text line = text_from(rest->bytes, size);

	size += end ? 1 : 0;
	*rest = text_from(rest->bytes + size, rest->size - size);
	return line;
}

/* Whether a word stands in a list, separated by commas or spaces. */
static bool lists(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (; *list; list += strcspn(list, ", \n"), list += strspn(list, ", \n"))
		if (strcspn(list, ", \n") == length && !strncmp(list, word, length))
			return true;
	return false;
}

/* "4:memory:/path"; "0::/path" is the unified one. New, or NULL. */
static char *membership(const char *controller, struct rlmd_text memberships, bool *ret_unified)
{
	char *unified = NULL;

	while (memberships.size) {
		auto_free char *line = text_copy(next_line(&memberships));
		char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		if (lists(list + 1, controller)) {
			free(unified);
			*ret_unified = false;
			return xstrdup(path);
		}
		if (list[1] == '\0') {
			free(unified);
			unified = xstrdup(path);
		}
	}
	*ret_unified = true;
	return unified;
}

/* "36 35 98:0 /root /mounted/at rw,noatime master:1 - type source options" */
static char *directory_in_mount(char *line, const char *controller, const char *path, bool unified)
{
	char *more = strstr(line, " - "), *fields[5], *type, *options;
	size_t root;

	for (int i = 0; i < 5; i++)
		fields[i] = strsep(&line, " ");
	if (!more || !fields[4])
		return NULL;
	more += 3;
	type = strsep(&more, " ");
	strsep(&more, " ");
	options = more;
	if (strcmp(type, unified ? "cgroup2" : "cgroup") || !options ||
	    (!unified && !lists(options, controller)))
		return NULL;
	root = strcmp(fields[3], "/") ? strlen(fields[3]) : 0;
	if (strncmp(path, fields[3], root) || (root && path[root] && path[root] != '/'))
		return NULL;
	path += root;
	return xasprintf("%s%s", fields[4], strcmp(path, "/") ? path : "");
}

char *cgroup_directory(const char *controller, struct rlmd_text memberships,
		       struct rlmd_text mounts, bool *ret_unified)
{
	auto_free char *path = membership(controller, memberships, ret_unified);

	while (path && mounts.size) {
		auto_free char *line = text_copy(next_line(&mounts));
		char *parent = directory_in_mount(line, controller, path, *ret_unified);

		if (parent)
			return parent;
	}
	return NULL;
}

static unsigned long long start_time(int pid)
{
	auto_free char *path = xasprintf("/proc/%d/stat", pid);
	auto_free char *stat = read_small(path, 4096);
	char *rest = strrchr(stat, ')'); /* a name may hold anything */
	unsigned long long time = 0;

	/* The 22nd field; the name is the second. */
	if (rest)
		sscanf(rest + 1,
		       " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d"
		       " %*d %*d %*d %*d %llu",
		       &time);
	return time;
}

/* Of pids; 0 where there is no /proc to tell it. */
static unsigned long long own_namespace(void)
{
	struct stat space;

	return stat("/proc/self/ns/pid", &space) ? 0 : space.st_ino;
}

static char *own_name(const struct cgroup *cgroup, const char *parent)
{
	return xasprintf("%s/" NAME, parent, getpid(), own_namespace(), start_time(getpid()),
			 cgroup->number);
}

static bool is_a_name(const char *name)
{
	unsigned long long space, time;
	unsigned number;
	int pid, length = 0;

	return sscanf(name, NAME "%n", &pid, &space, &time, &number, &length) == 4 &&
	       (!name[length] || !strcmp(name + length, ASIDE));
}

static void tell_swept(const char *parent, const char *name, const struct log *log)
{
	auto_free char *path = xasprintf("%s/%s", parent, name);

	log_write(log, LOG_LEFTOVERS_SWEPT, LOG_FIELDS(LOG_TEXT("path", path)),
		  "a cgroup was removed that a killed rlmd had left");
}

/* Removes the groups of killed supervisors; the kernel keeps those that are not empty. */
static void sweep(const char *parent, const struct log *log)
{
	DIR *directory = opendir(parent);
	struct dirent *entry;

	while (directory && (entry = readdir(directory)))
		if (is_a_name(entry->d_name) && remove_unheld(dirfd(directory), entry->d_name))
			tell_swept(parent, entry->d_name, log);
	if (directory)
		closedir(directory);
}

/*
 * The unified hierarchy has no limits for a cgroup that holds processes beside
 * others, so we step aside into one of our own first. Where others stay, the
 * kernel refuses (EBUSY).
 */
static bool hand_down(struct cgroup *cgroup, const char *parent, const char *controller)
{
	auto_free char *enabled = NULL, *available = NULL, *order = xasprintf("+%s", controller);
	auto_free char *path = xasprintf("%s/cgroup.controllers", parent);

	available = read_small(path, 4096);
	if (!lists(available, controller)) {
		errno = ENOENT;
		return false;
	}
	free(path);
	path = xasprintf("%s/cgroup.subtree_control", parent);
	enabled = read_small(path, 4096);
	if (lists(enabled, controller) || !write_to(parent, "cgroup.subtree_control", order))
		return true;
	if (errno != EBUSY || cgroup->own)
		return false;
	cgroup->own = xstrdup(parent);
	free(path);
	path = own_name(cgroup, parent);
	cgroup->aside = xasprintf("%s" ASIDE, path);
	cgroup->hold = hold_directory(cgroup->aside);
	if (cgroup->hold < 0 || write_to(cgroup->aside, "cgroup.procs", "0"))
		return false;
	return !write_to(parent, "cgroup.subtree_control", order);
}

static bool make_directory(struct cgroup *cgroup, enum controller which, const char *parent)
{
	auto_free char *directory = own_name(cgroup, parent);

	if (cgroup->unified[which] && !hand_down(cgroup, parent, controllers[which].name))
		return false;
	/* Controllers that share a hierarchy share the directory. */
	cgroup->locks[which] = hold_directory(directory);
	if (cgroup->locks[which] < 0)
		return false;
	cgroup->directories[which] = take_pointer(&directory);
	return true;
}

static long set_limit(const struct cgroup *cgroup, enum controller which)
{
	const char *directory = cgroup->directories[which];
	bool unified = cgroup->unified[which];
	const char *limit = controllers[which].files[unified].limit;
	const char *swap = controllers[which].files[unified].swap;
	/* Processor time: as much as one program among others, all workers together. */
	uint64_t values[CONTROLLERS] = {
		[MEMORY] = cgroup->limits.memory,
		[PIDS] = cgroup->limits.threads,
		[CPU] = unified ? 100 : 1024,
	};
	auto_free char *value = xasprintf("%llu", (unsigned long long)values[which]);

	if (write_to(directory, limit, value))
		return -1;
	/* None beside the memory; a kernel without swap has no such file, or not the means. */
	if (swap && write_to(directory, swap, unified ? "0" : value))
		return errno == ENOENT || errno == EOPNOTSUPP ? 0 : -1;
	return 0;
}

static void open_controller(struct cgroup *cgroup, enum controller which,
			    struct rlmd_text memberships, struct rlmd_text mounts,
			    struct steps *steps)
{
	auto_free char *parent = cgroup_directory(controllers[which].name, memberships, mounts,
						  &cgroup->unified[which]);
	enum step group = controllers[which].group, limit = controllers[which].limit;

	errno = ENOENT;
	if (parent)
		sweep(parent, cgroup->limits.log);
	if (steps_break(steps, group) || !parent || !make_directory(cgroup, which, parent)) {
		steps_note(steps, group, -1);
		return;
	}
	cgroup->limiting[which] = !steps_break(steps, limit) && !set_limit(cgroup, which);
	if (!cgroup->limiting[which])
		steps_note(steps, limit, -1);
}

uint64_t cgroup_memory_limit(const char *lowest, bool unified)
{
	const char *name = controllers[MEMORY].files[unified].limit;
	auto_free char *directory = xstrdup(lowest);
	uint64_t smallest = UINT64_MAX;
	char *last = directory;

	/* Above the hierarchy's root there is no such file, nor in the unified one's root. */
	while (last) {
		auto_free char *path = xasprintf("%s/%s", directory, name);
		auto_free char *content = read_small(path, 64);
		uint64_t limit = strtoull(content, NULL, 10);

		if (limit && limit < smallest) /* "max" is none */
			smallest = limit;
		last = strrchr(directory, '/');
		if (last)
			*last = '\0';
	}
	return smallest;
}

uint64_t cgroup_memory_above(void)
{
	auto_free char *memberships = read_small("/proc/self/cgroup", MEMBERSHIPS_MAX);
	auto_free char *mounts = read_small("/proc/self/mountinfo", MOUNTS_MAX);
	bool unified;
	auto_free char *parent = cgroup_directory(controllers[MEMORY].name, text_of(memberships),
						  text_of(mounts), &unified);

	return parent ? cgroup_memory_limit(parent, unified) : UINT64_MAX;
}

struct cgroup *cgroup_new(const struct cgroup_limits *limits, struct steps *steps)
{
	auto_free char *memberships = read_small("/proc/self/cgroup", MEMBERSHIPS_MAX);
	auto_free char *mounts = read_small("/proc/self/mountinfo", MOUNTS_MAX);
	struct cgroup *cgroup = xcalloc(1, sizeof *cgroup);
	static atomic_uint count; /* engines of several threads */

	cgroup->number = count++;
	cgroup->limits = *limits;
	cgroup->hold = cgroup->kills = -1;
	for (int i = 0; i < CONTROLLERS; i++)
		cgroup->locks[i] = -1;
	for (int i = 0; i < CONTROLLERS; i++)
		open_controller(cgroup, (enum controller)i, text_of(memberships), text_of(mounts),
				steps);
	return cgroup;
}

static void release(int *lock)
{
	if (*lock >= 0)
		close(take_fd(lock));
}

/* For each controller that has its limit there. */
static bool make_again(struct cgroup *cgroup, const char *directory)
{
	for (int i = 0; i < CONTROLLERS; i++) {
		if (!cgroup->limiting[i] || strcmp(cgroup->directories[i], directory))
			continue;
		release(&cgroup->locks[i]);
		cgroup->locks[i] = hold_directory(directory);
		if (cgroup->locks[i] < 0 || set_limit(cgroup, (enum controller)i))
			return false;
	}
	return true;
}

/* Empty as it was, somebody may have removed it: a lock keeps off only those who look at it. */
static bool enter(struct cgroup *cgroup, const char *directory, const char *number)
{
	if (!write_to(directory, "cgroup.procs", number))
		return true;
	if (errno != ENOENT && errno != ENODEV)
		return false;
	return make_again(cgroup, directory) && !write_to(directory, "cgroup.procs", number);
}

/* Of the directory that a process is in now, and that stays for that. */
static void open_kills(struct cgroup *cgroup)
{
	auto_free char *path = NULL;

	release(&cgroup->kills);
	if (!cgroup->limiting[MEMORY])
		return;
	path = xasprintf("%s/%s", cgroup->directories[MEMORY],
			 cgroup->unified[MEMORY] ? "memory.events" : "memory.oom_control");
	cgroup->kills = open(path, O_RDONLY | O_CLOEXEC);
}

void cgroup_join(struct cgroup *cgroup, pid_t pid, struct steps *steps)
{
	auto_free char *number = xasprintf("%d", pid);

	for (int i = 0; i < CONTROLLERS; i++) {
		enum step join = controllers[i].join;

		if (!cgroup->limiting[i])
			continue;
		if (!steps_break(steps, join) && enter(cgroup, cgroup->directories[i], number))
			continue;
		steps_note(steps, join, -1);
		cgroup->limiting[i] = false;
	}
	open_kills(cgroup);
}

uint32_t cgroup_layers(const struct cgroup *cgroup)
{
	uint32_t layers = 0;

	for (int i = 0; i < CONTROLLERS; i++)
		if (cgroup->limiting[i])
			layers |= 1U << controllers[i].layer;
	return layers;
}

int64_t cgroup_kills(const struct cgroup *cgroup)
{
	char events[EVENTS_MAX + 1];
	ssize_t size = cgroup->kills < 0 ? 0 : pread(cgroup->kills, events, EVENTS_MAX, 0);
	const char *kills;

	events[size > 0 ? size : 0] = '\0';
	kills = strstr(events, "oom_kill ");
	return kills ? strtoll(kills + strlen("oom_kill "), NULL, 10) : 0;
}

/* Back to where we came from, so that nothing of ours is left. */
static void step_back(struct cgroup *cgroup)
{
	for (int i = 0; i < CONTROLLERS; i++) {
		auto_free char *order = xasprintf("-%s", controllers[i].name);

		if (cgroup->unified[i])
			write_to(cgroup->own, "cgroup.subtree_control", order);
	}
	write_to(cgroup->own, "cgroup.procs", "0");
	rmdir(cgroup->aside);
	release(&cgroup->hold);
}

void cgroup_cut(struct cgroup *cgroup)
{
	for (int i = 0; i < CONTROLLERS; i++)
		free(take_pointer(&cgroup->directories[i]));
	free(take_pointer(&cgroup->own));
	release(&cgroup->hold);
}

void cgroup_free(struct cgroup *cgroup)
{
	if (!cgroup)
		return;
	/* Only now: in the unified hierarchy one directory is that of several controllers. */
	for (int i = 0; i < CONTROLLERS; i++) {
		if (cgroup->directories[i])
			rmdir(cgroup->directories[i]);
		release(&cgroup->locks[i]);
		free(cgroup->directories[i]);
	}
	release(&cgroup->kills);
	if (cgroup->own)
		step_back(cgroup);
	free(cgroup->own);
	free(cgroup->aside);
	free(cgroup);
}
