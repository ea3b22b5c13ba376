#include "walls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_MDWE /* of Linux 6.3 */
#define PR_SET_MDWE              65
#define PR_GET_MDWE              66
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

enum {
	SPARE_FDS = 32, /* that a worker may open beside its own: asyncio's, duplicates */
	STACK_BYTES = 8 << 20,
	CPU_SECONDS = 3600,
	SIGNALS_PENDING = 64,
};

static bool prepared; /* the environment is as it should be, the filter is here */
static struct sock_filter filter_code[FILTER_CODE_MAX];
static unsigned short filter_size;
static struct sock_filter *filter_own_pid; /* the instruction that compares with it */

static bool environment_is_ours(void)
{
	static const char *const ours[] = {LAUNCH_ENVIRONMENT};
	size_t count = sizeof ours / sizeof ours[0], i;

	for (i = 0; i < count; i++)
		if (!environ[i] || strcmp(environ[i], ours[i]))
			return false;
	return !environ[count];
}

static bool read_filter(void)
{
	ssize_t got = pread(LAUNCH_FILTER, filter_code, sizeof filter_code, 0);
	unsigned short i;

	close(LAUNCH_FILTER);
	if (got <= 0 || (size_t)got % sizeof filter_code[0])
		return false;
	filter_size = (unsigned short)((size_t)got / sizeof filter_code[0]);
	for (i = 0; i < filter_size; i++) {
		if (filter_code[i].k != FILTER_OWN_PID)
			continue;
		if (filter_own_pid || filter_code[i].code != (BPF_JMP | BPF_JEQ | BPF_K))
			return false;
		filter_own_pid = &filter_code[i];
	}
	return filter_own_pid;
}

const char *walls_prepare(void)
{
	if (!environment_is_ours())
		return "the environment is not the supervisor's";
	if (!read_filter())
		return "the filter is not what it should be";
	prepared = true;
	return NULL;
}

static enum standing stands(bool condition)
{
	return condition ? STANDS : FALLEN;
}

static enum standing raise_parent(const struct launch *launch)
{
	/* The parent may have died before it could take us along. */
	return stands(!prctl(PR_SET_PDEATHSIG, SIGKILL) && getppid() == launch->request.supervisor);
}

static enum standing raise_environment(const struct launch *launch)
{
	(void)launch;
	return stands(prepared);
}

/*
 * The received descriptors are the lowest that were free, in ascending order,
 * and 0 to 3 were not free: each one moves down, and none onto one that is
 * still to be moved.
 */
static enum standing raise_descriptors(const struct launch *launch)
{
	size_t i;

	for (i = 0; i < launch->fd_count; i++) {
		int target = LAUNCH_CONTROL + (int)i;

		if (launch->fds[i] <= target || dup2(launch->fds[i], target) < 0)
			return FALLEN;
	}
	if (dup2(STDIN_FILENO, STDERR_FILENO) < 0)
		return FALLEN;
	return stands(!close_range(LAUNCH_CONTROL + (unsigned)launch->fd_count, ~0U, 0));
}

/* Soft and hard alike, so that it cannot be raised again; a lower one is left. */
static bool limit(int resource, rlim_t value)
{
	struct rlimit now;

	if (getrlimit(resource, &now))
		return false;
	if (now.rlim_max < value)
		value = now.rlim_max;
	return !setrlimit(resource, &(struct rlimit){value, value});
}

static enum standing raise_limits(const struct launch *launch)
{
	return stands(limit(RLIMIT_DATA, launch->request.data_limit) &&
		      limit(RLIMIT_AS, launch->request.address_limit) &&
		      limit(RLIMIT_STACK, STACK_BYTES) &&
		      limit(RLIMIT_NOFILE, LAUNCH_CONTROL + launch->fd_count + SPARE_FDS) &&
		      limit(RLIMIT_CPU, CPU_SECONDS) && limit(RLIMIT_SIGPENDING, SIGNALS_PENDING) &&
		      limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_CORE, 0) && limit(RLIMIT_MEMLOCK, 0) &&
		      limit(RLIMIT_MSGQUEUE, 0) && limit(RLIMIT_NICE, 0) &&
		      limit(RLIMIT_RTPRIO, 0));
}

static enum standing raise_capabilities(const struct launch *launch)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct now[2], none[2] = {{0}};
	uint64_t permitted;
	int capability;

	(void)launch;
	if (syscall(SYS_capget, &header, now))
		return FALLEN;
	permitted = now[0].permitted | (uint64_t)now[1].permitted << 32;
	/* A user namespace may forbid it; then they are groups of the user who made it. */
	if (permitted & 1U << CAP_SETGID && syscall(SYS_setgroups, 0, NULL) && errno != EPERM)
		return FALLEN;
	if (permitted & 1U << CAP_SETPCAP)
		for (capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
			if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0))
				return FALLEN;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
		return FALLEN;
	if (syscall(SYS_capset, &header, none) || syscall(SYS_capget, &header, now))
		return FALLEN;
	return stands(!now[0].permitted && !now[1].permitted && !now[0].effective &&
		      !now[1].effective);
}

static enum standing raise_privileges(const struct launch *launch)
{
	(void)launch;
	return stands(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
		      prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
}

static enum standing raise_undumpable(const struct launch *launch)
{
	(void)launch;
	return stands(!prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) &&
		      prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
}

static enum standing raise_wx(const struct launch *launch)
{
	(void)launch;
	if (prctl(PR_GET_MDWE, 0, 0, 0, 0) < 0)
		return ABSENT;
	prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0);
	return stands(prctl(PR_GET_MDWE, 0, 0, 0, 0) & PR_MDWE_REFUSE_EXEC_GAIN);
}

static enum standing raise_filter(const struct launch *launch)
{
	struct sock_fprog program = {filter_size, filter_code};

	(void)launch;
	filter_own_pid->k = (uint32_t)getpid();
	return stands(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

static bool refused(long result)
{
	return result == -1 && errno == EPERM;
}

/* Exactly its own descriptors, out of all that it could have. */
static bool descriptors_are_own(const struct launch *launch)
{
	int own = LAUNCH_CONTROL + (int)launch->fd_count, fd;

	for (fd = 0; fd < own + SPARE_FDS; fd++)
		if ((fcntl(fd, F_GETFD) >= 0) != (fd < own))
			return false;
	return true;
}

static bool process_refused(void)
{
	long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (!child)
		_exit(WALL_EXIT + WALL_proof);
	return refused(child);
}

/* By doing it: every kind of call that a guarantee rests on is tried once. */
static enum standing raise_proof(const struct launch *launch)
{
	long page = sysconf(_SC_PAGESIZE);

	return stands(refused(syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY)) &&
		      refused(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0)) &&
		      refused(syscall(SYS_execve, "/", NULL, NULL)) && process_refused() &&
		      refused(syscall(SYS_kill, getppid(), 0)) &&
		      refused(syscall(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0)) &&
		      refused(syscall(SYS_mmap, NULL, page, PROT_READ | PROT_EXEC,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) &&
		      descriptors_are_own(launch));
}

static const struct {
	enum standing (*raise)(const struct launch *);
	const char *layer;
} walls[] = {
#define WALL(name, layer, meaning) {raise_##name, layer},
#include "sandbox/walls.def"
#undef WALL
};

void walls_raise(const struct launch *launch, enum standing standing[WALL_COUNT])
{
	int i;

	for (i = 0; i < WALL_COUNT; i++) {
		standing[i] = walls[i].raise(launch);
		if (standing[i] == FALLEN)
			_exit(WALL_EXIT + i);
	}
}

const char *walls_layer(enum wall wall)
{
	return walls[wall].layer;
}
