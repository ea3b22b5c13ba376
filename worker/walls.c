#include "walls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hand_over.h"

#ifndef PR_SET_MDWE /* of Linux 6.3 */
#define PR_SET_MDWE              65
#define PR_GET_MDWE              66
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

enum {
	SPARE_FDS = 32, /* that a worker may open beside its own: asyncio's, duplicates */
	STACK_BYTES = 8 << 20,
	SIGNALS_PENDING = 64,
	NICENESS = 10,
};

/* The argument of sched_setattr(2); some C libraries have it, some not. */
struct schedule {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* A worker whose walls go up. */
struct raising {
	const struct launch *launch;       /* lent */
	const struct enclosure *enclosure; /* lent */
	struct steps *steps;               /* lent */
};

/* ABSENT: this kernel, or this mode, has no such wall. */
enum standing { FALLEN, ABSENT, STANDS };

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

/* While it may still open files: where /proc is mounted with hidepid, nobody else may. */
static enum standing raise_watched(const struct raising *raising)
{
	int proc = raising->enclosure->proc, status;
	bool told;

	errno = ENOENT;
	status = (int)STEP_TRY(raising->steps, watch,
			       proc < 0 ? -1 : openat(proc, "self/status", O_RDONLY | O_CLOEXEC));
	told = status >= 0 && hand_over(raising->launch->handover, "", 1, &status, 1);
	close(raising->launch->handover);
	if (status >= 0)
		close(status);
	return stands(told);
}

static enum standing raise_priority(const struct raising *raising)
{
	struct schedule low = {.size = sizeof low, .policy = SCHED_BATCH, .nice = NICENESS};

	return STEP_TRY(raising->steps, priority, syscall(SYS_sched_setattr, 0, &low, 0)) ? ABSENT
											  : STANDS;
}

/* By system calls: the library's own would look for other threads. */
static enum standing raise_identity(const struct raising *raising)
{
	uid_t own = raising->launch->request.uid, uids[3];
	gid_t gids[3];

	if (!own)
		return ABSENT;
	if (STEP_TRY(raising->steps, gid, syscall(SYS_setresgid, own, own, own)) ||
	    STEP_TRY(raising->steps, uid, syscall(SYS_setresuid, own, own, own)) ||
	    getresuid(&uids[0], &uids[1], &uids[2]) || getresgid(&gids[0], &gids[1], &gids[2]))
		return FALLEN;
	return stands(uids[0] == own && uids[1] == own && uids[2] == own && gids[0] == own &&
		      gids[1] == own && gids[2] == own && !getgroups(0, NULL));
}

/* In a user namespace the template knows who it is outside. */
static enum standing raise_outside(const struct raising *raising)
{
	if (raising->enclosure->mode == MODE_userns)
		return raising->enclosure->layers & BIT(not_root) ? STANDS : ABSENT;
	return getuid() && geteuid() ? STANDS : ABSENT;
}

/* After the identity: a change of uid takes the tie off. */
static enum standing raise_parent(const struct raising *raising)
{
	return stands(tie_to_supervisor(raising->steps) &&
		      getppid() == raising->launch->request.parent);
}

static enum standing raise_pid(const struct raising *raising)
{
	(void)raising;
	return getpid() == 1 ? STANDS : ABSENT;
}

static enum standing raise_root(const struct raising *raising)
{
	struct statfs root;

	(void)raising;
	if (statfs("/", &root))
		return FALLEN;
	return root.f_type == TMPFS_MAGIC && root.f_flags & ST_RDONLY && root.f_files == 1 ? STANDS
											   : ABSENT;
}

/* A domain beside those of the others, within the template's: they cannot signal each other. */
static enum standing raise_landlock(const struct raising *raising)
{
	int ruleset = raising->enclosure->landlock;

	if (ruleset < 0)
		return ABSENT;
	if (STEP_TRY(raising->steps, landlock_self,
		     syscall(SYS_landlock_restrict_self, ruleset, 0)))
		return FALLEN;
	return stands(open("/", O_RDONLY | O_DIRECTORY) < 0 && errno == EACCES);
}

static enum standing raise_environment(const struct raising *raising)
{
	(void)raising;
	return stands(prepared);
}

/*
 * The received descriptors are the lowest that were free, in ascending order,
 * and 0 to 3 were not free: each one moves down, and none onto one that is
 * still to be moved. The first is the worker's own null: 0, 1 and 2.
 */
static enum standing raise_descriptors(const struct raising *raising)
{
	const struct launch *launch = raising->launch;
	size_t i;

	for (i = 0; i < launch->fd_count; i++) {
		int target = STDERR_FILENO + (int)i;

		if (launch->fds[i] <= target ||
		    STEP_TRY(raising->steps, dup, dup2(launch->fds[i], target)) < 0)
			return FALLEN;
	}
	if (STEP_TRY(raising->steps, dup, dup2(STDERR_FILENO, STDIN_FILENO)) < 0 ||
	    STEP_TRY(raising->steps, dup, dup2(STDERR_FILENO, STDOUT_FILENO)) < 0)
		return FALLEN;
	return stands(!STEP_TRY(raising->steps, close_range,
				close_range(STDERR_FILENO + (unsigned)launch->fd_count, ~0U, 0)));
}

/* Soft and hard alike, so that it cannot be raised again; a lower one is left. */
static bool limit(const struct raising *raising, __rlimit_resource_t resource, rlim_t value)
{
	struct rlimit now;

	if (getrlimit(resource, &now))
		return false;
	if (now.rlim_max < value)
		value = now.rlim_max;
	return !STEP_TRY(raising->steps, rlimits,
			 setrlimit(resource, &(struct rlimit){value, value}));
}

static enum standing raise_limits(const struct raising *raising)
{
	const struct launch *launch = raising->launch;

	if (launch->request.threads && !limit(raising, RLIMIT_NPROC, launch->request.threads))
		return FALLEN;
	return stands(limit(raising, RLIMIT_DATA, launch->request.data_limit) &&
		      limit(raising, RLIMIT_AS, launch->request.address_limit) &&
		      limit(raising, RLIMIT_STACK, STACK_BYTES) &&
		      limit(raising, RLIMIT_NOFILE, STDERR_FILENO + launch->fd_count + SPARE_FDS) &&
		      limit(raising, RLIMIT_CPU, launch->request.cpu_seconds) &&
		      limit(raising, RLIMIT_SIGPENDING, SIGNALS_PENDING) &&
		      limit(raising, RLIMIT_FSIZE, 0) && limit(raising, RLIMIT_CORE, 0) &&
		      limit(raising, RLIMIT_MEMLOCK, 0) && limit(raising, RLIMIT_MSGQUEUE, 0) &&
		      limit(raising, RLIMIT_NICE, 0) && limit(raising, RLIMIT_RTPRIO, 0));
}

static enum standing raise_capabilities(const struct raising *raising)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct now[2], none[2] = {{0}};

	if (STEP_TRY(raising->steps, drop, syscall(SYS_capset, &header, none)) ||
	    syscall(SYS_capget, &header, now))
		return FALLEN;
	return stands(!now[0].permitted && !now[1].permitted && !now[0].effective &&
		      !now[1].effective && !now[0].inheritable && !now[1].inheritable);
}

static enum standing raise_privileges(const struct raising *raising)
{
	(void)raising; /* inherited */
	return stands(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
}

static enum standing raise_undumpable(const struct raising *raising)
{
	return stands(!STEP_TRY(raising->steps, undumpable, prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)) &&
		      prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
}

static enum standing raise_wx(const struct raising *raising)
{
	if (STEP_TRY(raising->steps, wx, prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)))
		return ABSENT;
	return stands(prctl(PR_GET_MDWE, 0, 0, 0, 0) & PR_MDWE_REFUSE_EXEC_GAIN);
}

static enum standing raise_filter(const struct raising *raising)
{
	struct sock_fprog program = {filter_size, filter_code};

	filter_own_pid->k = (uint32_t)getpid();
	return stands(!STEP_TRY(raising->steps, filter,
				syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)));
}

static bool refused(long result)
{
	return result == -1 && errno == EPERM;
}

/* Exactly its own descriptors, out of all that it could have. */
static bool descriptors_are_own(const struct launch *launch)
{
	int own = STDERR_FILENO + (int)launch->fd_count, fd;

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
static enum standing raise_proof(const struct raising *raising)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return stands(refused(syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY)) &&
		      refused(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0)) &&
		      refused(syscall(SYS_execve, "/", NULL, NULL)) && process_refused() &&
		      refused(syscall(SYS_kill, getppid(), 0)) &&
		      refused(syscall(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0)) &&
		      refused(syscall(SYS_mmap, NULL, page, PROT_READ | PROT_EXEC,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) &&
		      descriptors_are_own(raising->launch));
}

static const struct {
	enum standing (*raise)(const struct raising *);
	enum layer layer;
} walls[] = {
#define WALL(name, layer, meaning) {raise_##name, LAYER_##layer},
#include "sandbox/walls.def"
#undef WALL
};

/* Layers that a worker may lack, unless they were asked for. */
#define OPTIONAL                                                                                   \
	(BIT(priority) | BIT(uid) | BIT(not_root) | BIT(pid) | BIT(mount) | BIT(landlock) | BIT(wx))

static uint32_t bit(enum layer layer)
{
	return layer < LAYER_COUNT ? 1U << layer : 0;
}

/* The trial's last word; its `out` is where raise_descriptors() has put it, or not yet. */
_Noreturn static void end_trial(const struct raising *raising, uint32_t layers, int fallen)
{
	struct launch_trial trial = {.layers = layers, .fallen = fallen};
	const struct launch *launch = raising->launch;
	size_t i;

	for (i = 0; i < raising->steps->count; i++)
		trial.failures[trial.failure_count++] = raising->steps->failures[i];
	if (write(launch->fds[LAUNCH_OWN_FDS - 1], &trial, sizeof trial) < 0 && errno == EBADF)
		(void)!write(LAUNCH_CONTROL + 1, &trial, sizeof trial);
	_exit(0);
}

uint32_t walls_raise(const struct launch *launch, struct enclosure *enclosure)
{
	struct raising raising = {launch, enclosure, &enclosure->steps};
	uint32_t needed = launch->request.layers, layers = enclosure->layers;
	int i;

	raising.steps->count = 0;
	for (i = 0; i < WALL_COUNT; i++) {
		enum standing standing = walls[i].raise(&raising);
		uint32_t own = bit(walls[i].layer);

		if (standing == ABSENT && (needed & own || !(OPTIONAL & own)))
			standing = FALLEN;
		if (standing == FALLEN && launch->request.trial)
			end_trial(&raising, layers, i);
		if (standing == FALLEN)
			_exit(WALL_EXIT + i);
		if (standing == STANDS)
			layers |= own;
	}
	if ((layers & needed) != needed)
		_exit(WALL_EXIT + WALL_proof);
	if (launch->request.trial)
		end_trial(&raising, layers, -1);
	return layers;
}
