#include "enclose.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CAPABILITY(name) ((uint64_t)1 << CAP_##name)

/* Younger than the headers of some systems: what Landlock handles, and since which of its ABIs. */
struct landlock_handled {
	uint64_t files, net, scoped;
};
enum {
	LANDLOCK_VERSION = 1,
	LANDLOCK_BENEATH = 1, /* a kind of rule */
	LANDLOCK_READ_FILE = 1 << 2,
	LANDLOCK_FILES = 0x1fff, /* of ABI 1; each of the next has its own bit */
	LANDLOCK_REFER = 1 << 13,
	LANDLOCK_TRUNCATE = 1 << 14,
	LANDLOCK_IOCTL = 1 << 15,
	LANDLOCK_TCP = 3,
	LANDLOCK_SCOPES = 3,
	ABI_REFER = 2,
	ABI_TRUNCATE = 3,
	ABI_TCP = 4,
	ABI_IOCTL = 5,
	ABI_SCOPES = 6,
};

struct landlock_beneath {
	uint64_t allowed;
	int32_t parent;
} __attribute__((packed));

/* How far an attempt at a mode went. */
enum attempt { ENTERED, UNCHANGED, STUCK };

bool tie_to_supervisor(struct steps *steps)
{
	struct pollfd life = {.fd = LAUNCH_LIFE, .events = POLLIN};

	/* In this order: it may have died before it could take us along. */
	return STEP_TRY(steps, death_signal, prctl(PR_SET_PDEATHSIG, SIGKILL)) == 0 &&
	       STEP_TRY(steps, life, poll(&life, 1, 0)) == 0;
}

static uint64_t capabilities(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct now[2];

	if (syscall(SYS_capget, &header, now))
		return 0;
	return now[0].permitted | (uint64_t)now[1].permitted << 32;
}

static bool has(uint64_t wanted)
{
	return (capabilities() & wanted) == wanted;
}

static long keep_capabilities(uint64_t kept)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {{0}};

	data[0].effective = data[0].permitted = (uint32_t)kept;
	data[1].effective = data[1].permitted = (uint32_t)(kept >> 32);
	return syscall(SYS_capset, &header, data);
}

static long write_file(const char *path, const char *content)
{
	size_t size = strlen(content);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t written;

	if (fd < 0)
		return -1;
	written = write(fd, content, size);
	close(fd);
	return written == (ssize_t)size ? 0 : -1;
}

/*
 * An empty file system, read-only from the start, over a directory that any
 * system has; then everything else is taken away from below it.
 */
static bool enter_empty_root(struct steps *steps)
{
	static const unsigned long flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
	static const char options[] = "size=4k,nr_inodes=1,mode=0555";
	const char *place = access("/tmp", F_OK) ? "/proc" : "/tmp";

	return !STEP_TRY(steps, propagation, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) &&
	       !STEP_TRY(steps, tmpfs, mount("none", place, "tmpfs", flags, options)) &&
	       !STEP_TRY(steps, pivot_root,
			 chdir(place) ? -1 : syscall(SYS_pivot_root, ".", ".")) &&
	       !STEP_TRY(steps, detach, umount2(".", MNT_DETACH) ? -1 : chdir("/"));
}

#define SPACES (CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

/* A number that no other mount namespace has; 0 where there is no /proc to tell it. */
static uint64_t space_by_proc(void)
{
	struct stat space;

	return stat("/proc/self/ns/mnt", &space) ? 0 : space.st_ino;
}

/* The mount that is our root: a copy of it in a copy of the namespace. 0 before Linux 5.8. */
static uint64_t space_by_root(void)
{
	struct statx root = {0};

	if (statx(AT_FDCWD, "/", 0, STATX_MNT_ID, &root) || !(root.stx_mask & STATX_MNT_ID))
		return 0;
	return root.stx_mnt_id;
}

/*
 * unshare(2), not taken at its word: a filter around us may answer "done" for what it
 * forbids, and what comes next would mount over the machine's own root.
 */
static long leave_for(int spaces)
{
	uint64_t (*space)(void) = space_by_proc() ? space_by_proc : space_by_root;
	uint64_t before = space(), after;

	if (before && unshare(spaces))
		return -1;
	after = space();
	if (before && after && after != before)
		return 0;
	errno = ENOSYS;
	return -1;
}

static enum attempt enter_root(struct enclosure *enclosure, uint32_t uid)
{
	(void)uid;
	/* One call for all of them: it changes everything or nothing. */
	if (STEP_TRY(&enclosure->steps, namespaces, leave_for(SPACES)))
		return UNCHANGED;
	return enter_empty_root(&enclosure->steps) ? ENTERED : STUCK;
}

/* Whether user namespaces can be made, without making one of our own yet. */
static long try_user_namespace(void)
{
	long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	if (!child)
		_exit(0);
	return child < 0 ? -1 : waitpid((pid_t)child, NULL, 0) < 0;
}

/* In the namespace it is nobody, whoever it is outside. */
static bool map_ids(struct steps *steps, uid_t uid, gid_t gid)
{
	char uid_map[32], gid_map[32];

	snprintf(uid_map, sizeof uid_map, "%d %u 1", LAUNCH_ID_INSIDE, uid);
	snprintf(gid_map, sizeof gid_map, "%d %u 1", LAUNCH_ID_INSIDE, gid);
	/* The files belong to root where the process is undumpable, as a change of uid makes it. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	return !STEP_TRY(steps, setgroups, write_file("/proc/self/setgroups", "deny")) &&
	       !STEP_TRY(steps, uid_map, write_file("/proc/self/uid_map", uid_map)) &&
	       !STEP_TRY(steps, gid_map, write_file("/proc/self/gid_map", gid_map));
}

/* Root's own uid opens what is root's without any capability, /proc/sys for one. */
static void become_stranger(struct steps *steps, uint32_t uid)
{
	if (!STEP_TRY(steps, outer_groups, syscall(SYS_setgroups, 0, NULL)) &&
	    !STEP_TRY(steps, outer_gid, setresgid(uid, uid, uid)))
		STEP_TRY(steps, outer_uid, setresuid(uid, uid, uid));
}

static enum attempt enter_userns(struct enclosure *enclosure, uint32_t uid)
{
	struct steps *steps = &enclosure->steps;
	gid_t gid;

	if (STEP_TRY(steps, user_namespace, try_user_namespace()))
		return UNCHANGED;
	/* Better an unknown uid than root's: it is still its own outside. */
	if (!geteuid() && uid)
		become_stranger(steps, uid);
	uid = geteuid();
	gid = getegid();
	enclosure->layers |= uid ? BIT(not_root) : 0;
	if (STEP_TRY(steps, user_namespace, leave_for(CLONE_NEWUSER | SPACES)))
		return STUCK;
	return map_ids(steps, uid, gid) && enter_empty_root(steps) ? ENTERED : STUCK;
}

static enum attempt enter_uid(struct enclosure *enclosure, uint32_t uid)
{
	(void)uid;
	if (has(CAPABILITY(SETUID) | CAPABILITY(SETGID)))
		return ENTERED;
	errno = EPERM;
	steps_note(&enclosure->steps, STEP_uid, -1);
	return UNCHANGED;
}

static enum attempt enter_plain(struct enclosure *enclosure, uint32_t uid)
{
	(void)enclosure;
	(void)uid;
	return ENTERED;
}

/* How each mode is entered; which layers stand then, and what its workers still need. */
static const struct {
	enum attempt (*enter)(struct enclosure *, uint32_t uid);
	uint64_t kept;
	uint32_t layers;
} modes[] = {
	[MODE_root] = {enter_root, CAPABILITY(SYS_ADMIN) | CAPABILITY(SETUID) | CAPABILITY(SETGID),
		       NAMESPACES & ~BIT(pid) & ~BIT(mount)},
	[MODE_userns] = {enter_userns, CAPABILITY(SYS_ADMIN),
			 (NAMESPACES & ~BIT(pid) & ~BIT(mount)) | BIT(user)},
	[MODE_uid] = {enter_uid, CAPABILITY(SETUID) | CAPABILITY(SETGID), 0},
	[MODE_plain] = {enter_plain, 0, 0},
};

static bool enter_best(struct enclosure *enclosure, const struct launch_terms *terms)
{
	int mode;

	for (mode = 0; mode < MODE_COUNT; mode++) {
		if (!(terms->modes >> mode & 1))
			continue;
		enclosure->mode = (enum mode)mode;
		enclosure->steps.mode = (uint16_t)mode;
		switch (modes[mode].enter(enclosure, terms->uid)) {
		case ENTERED:
			enclosure->layers |= modes[mode].layers;
			return true;
		case UNCHANGED:
			break;
		case STUCK:
			return false;
		}
	}
	return false;
}

/* All that this kernel's Landlock can forbid; the size of what it knows of it, or 0. */
static size_t handle_all(struct enclosure *enclosure, struct landlock_handled *ret_handled)
{
	struct landlock_handled handled = {.files = LANDLOCK_FILES};
	struct steps *steps = &enclosure->steps;
	size_t size = sizeof handled.files;
	long abi = STEP_TRY(steps, landlock,
			    syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION));

	if (abi < 1)
		return 0;
	handled.files |= abi >= ABI_REFER ? LANDLOCK_REFER : 0;
	handled.files |= abi >= ABI_TRUNCATE ? LANDLOCK_TRUNCATE : 0;
	handled.files |= abi >= ABI_IOCTL ? LANDLOCK_IOCTL : 0;
	errno = ENOSYS;
	if (!STEP_TRY(steps, landlock_tcp, abi >= ABI_TCP ? 0 : -1)) {
		handled.net = LANDLOCK_TCP;
		size = offsetof(struct landlock_handled, scoped);
	}
	errno = ENOSYS;
	if (!STEP_TRY(steps, landlock_scope, abi >= ABI_SCOPES ? 0 : -1)) {
		handled.scoped = LANDLOCK_SCOPES;
		size = sizeof handled;
	}
	enclosure->layers |= (handled.net ? BIT(tcp) : 0) | (handled.scoped ? BIT(scope) : 0);
	*ret_handled = handled;
	return size;
}

static int create_ruleset(const struct landlock_handled *handled, size_t size)
{
	return size ? (int)syscall(SYS_landlock_create_ruleset, handled, size, 0) : -1;
}

/*
 * For the template: a worker that begins opens its status beneath /proc, and then enters a
 * domain of its own. Where the rule is refused, so is that.
 */
static long restrict_template(const struct enclosure *enclosure,
			      const struct landlock_handled *handled, size_t size)
{
	struct landlock_beneath rule = {LANDLOCK_READ_FILE, enclosure->proc};
	int ruleset = create_ruleset(handled, size);
	long result;

	if (ruleset < 0)
		return -1;
	if (enclosure->proc >= 0)
		syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_BENEATH, &rule, 0);
	result = syscall(SYS_landlock_restrict_self, ruleset, 0);
	close(ruleset);
	return result;
}

/* Also for the template itself: what cannot be done here must not be counted on. */
static bool enter_landlock(struct enclosure *enclosure)
{
	struct landlock_handled handled;
	size_t size = handle_all(enclosure, &handled);

	enclosure->landlock = -1;
	if (size)
		enclosure->landlock = (int)STEP_TRY(&enclosure->steps, landlock,
						    create_ruleset(&handled, size));
	if (enclosure->landlock < 0) {
		steps_note(&enclosure->steps, STEP_landlock_tcp, -1);
		steps_note(&enclosure->steps, STEP_landlock_scope, -1);
		enclosure->layers &= ~(BIT(tcp) | BIT(scope));
		return true;
	}
	return !STEP_TRY(&enclosure->steps, landlock_self,
			 restrict_template(enclosure, &handled, size));
}

/* Capabilities that come back by exec, by being root, by another uid: never. */
static bool bar_privileges(struct steps *steps)
{
	static const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
					  SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
					  SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
					  SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	int capability;

	if (STEP_TRY(steps, privileges, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) ||
	    STEP_TRY(steps, ambient, prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)))
		return false;
	if (!has(CAPABILITY(SETPCAP)))
		return true; /* nor can anybody add to them then */
	for (capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
		if (STEP_TRY(steps, bounding, prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)))
			return false;
	return !STEP_TRY(steps, securebits, prctl(PR_SET_SECUREBITS, bits, 0, 0, 0));
}

/*
 * Where a user namespace forbids it, they are groups of the user who made it, and
 * all that a process has whose uid is that user's too.
 */
static bool drop_groups(const struct enclosure *enclosure, struct steps *steps)
{
	bool own_uid = enclosure->mode == MODE_root || enclosure->mode == MODE_uid;

	if (!has(CAPABILITY(SETGID)) || !own_uid)
		return enclosure->mode == MODE_userns || !syscall(SYS_setgroups, 0, NULL) ||
		       errno == EPERM;
	return !STEP_TRY(steps, groups, syscall(SYS_setgroups, 0, NULL));
}

static bool tells_of_itself(int proc)
{
	return proc >= 0 && !faccessat(proc, "self/status", R_OK, 0);
}

/* Where there is none, one that is mounted nowhere: root may make it. -1 where there is no way. */
static int open_proc(void)
{
	int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC), making;

	if (tells_of_itself(proc))
		return proc;
	close(proc);
	making = (int)syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC);
	if (making < 0)
		return -1;
	syscall(SYS_fsconfig, making, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	proc = (int)syscall(SYS_fsmount, making, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOEXEC);
	close(making);
	if (tells_of_itself(proc))
		return proc;
	close(proc);
	return -1;
}

bool enclose(struct enclosure *enclosure, const struct launch_terms *terms)
{
	struct steps *steps = &enclosure->steps;

	*enclosure = (struct enclosure){.landlock = -1, .steps.without = terms->without};
	enclosure->proc = open_proc();
	/* The kernel that runs out of memory looks here first; a wish, where there is no /proc. */
	(void)!write_file("/proc/self/oom_score_adj", "1000");
	if (STEP_TRY(steps, keyring, syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL)) >= 0)
		enclosure->layers |= BIT(keyring);

	return enter_best(enclosure, terms) && drop_groups(enclosure, steps) &&
	       bar_privileges(steps) && enter_landlock(enclosure) &&
	       !STEP_TRY(steps, keep,
			 keep_capabilities(modes[enclosure->mode].kept & capabilities())) &&
	       !STEP_TRY(steps, hide, prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)) &&
	       tie_to_supervisor(steps);
}
