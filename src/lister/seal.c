#include "lister/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sandbox/filter.h"

/* Younger than the headers of some systems: what Landlock handles, and since which of its ABIs. */
struct handled {
	uint64_t files, net, scoped;
};

struct beneath {
	uint64_t allowed;
	int32_t parent;
} __attribute__((packed));

enum {
	LANDLOCK_VERSION = 1,
	LANDLOCK_BENEATH = 1, /* a kind of rule */
	READ_FILE = 1 << 2,
	READ_DIRECTORY = 1 << 3,
	FILES = 0x1fff, /* of ABI 1; each of the next has its own bit */
	REFER = 1 << 13,
	TRUNCATE = 1 << 14,
	IOCTL = 1 << 15,
	TCP = 3,
	SCOPES = 3,
	ABI_REFER = 2,
	ABI_TRUNCATE = 3,
	ABI_TCP = 4,
	ABI_IOCTL = 5,
	ABI_SCOPES = 6,
};

/* Builds whose seal is weaker: at its end a program that counts lines writes which ones ran, and
 * sanitizers ask for more memory and other calls. */
enum {
#if defined(RLMD_COUNTED)
	COUNTED = true,
#else
	COUNTED = false,
#endif
#if defined(RLMD_SANITIZED)
	SANITIZED = true,
#else
	SANITIZED = false,
#endif
};

#define CAPABILITY(name) (1U << CAP_##name)

/* -1: this kernel has no Landlock, or not for us. */
static int create_ruleset(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION);
	struct handled handled = {.files = FILES};
	size_t size = sizeof handled.files;

	if (abi < 1)
		return -1;
	handled.files |= abi >= ABI_REFER ? REFER : 0;
	handled.files |= abi >= ABI_TRUNCATE ? TRUNCATE : 0;
	handled.files |= abi >= ABI_IOCTL ? IOCTL : 0;
	if (abi >= ABI_TCP) {
		handled.net = TCP;
		size = offsetof(struct handled, scoped);
	}
	if (abi >= ABI_SCOPES) {
		handled.scoped = SCOPES;
		size = sizeof handled;
	}
	return (int)syscall(SYS_landlock_create_ruleset, &handled, size, 0);
}

static void allow_reading(int ruleset, const char *root)
{
	auto_close int fd = open(root, O_PATH | O_CLOEXEC);
	struct beneath rule = {READ_FILE | READ_DIRECTORY, fd};

	if (fd >= 0)
		syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_BENEATH, &rule, 0);
}

static void restrict_files(const char *const *roots, size_t count)
{
	auto_close int ruleset = create_ruleset();

	if (ruleset < 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (roots[i])
			allow_reading(ruleset, roots[i]);
	syscall(SYS_landlock_restrict_self, ruleset, 0);
}

/* Root reads the files of others as before, and that is all: above all it may not look into other
 * processes. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct own[2];
	const uint32_t kept = CAPABILITY(DAC_OVERRIDE) | CAPABILITY(DAC_READ_SEARCH);

	if (syscall(SYS_capget, &header, own))
		return;
	own[0].effective &= kept;
	own[0].permitted &= kept;
	own[0].inheritable = 0;
	own[1] = (struct __user_cap_data_struct){0};
	syscall(SYS_capset, &header, own);
}

/* The first that the kernel ends where memory is short. */
static void offer_to_end(void)
{
	auto_close int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	(void)!write(fd, "1000", 4);
}

static bool refuse_calls(struct rlmd_error *err)
{
	struct sock_fprog program = {
		.len = (unsigned short)filter_of_lister.size,
		.filter = (struct sock_filter *)filter_of_lister.code,
	};

	return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ||
	       error_errno(err, RLMD_ERROR_SANDBOX,
			   "the program that reads directories cannot be sealed: seccomp");
}

bool seal(const char *const *roots, size_t count, struct rlmd_error *err)
{
	const struct rlimit memory = {SEAL_MEMORY, SEAL_MEMORY};

	offer_to_end();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return error_errno(err, RLMD_ERROR_SANDBOX, "no_new_privs");
	if (COUNTED)
		return true;
	restrict_files(roots, count);
	drop_capabilities();
	if (SANITIZED)
		return true;
	if (setrlimit(RLIMIT_DATA, &memory))
		return error_errno(err, RLMD_ERROR_SANDBOX, "RLIMIT_DATA");
	return refuse_calls(err);
}

void seal_allow_seconds(unsigned seconds)
{
	const struct itimerval time = {.it_value.tv_sec = seconds};

	setitimer(ITIMER_PROF, &time, NULL);
}
