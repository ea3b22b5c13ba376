#include "sandbox/filter_compile.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The table is the build's to choose; it has the filter of workers where it says nothing. */
#if !defined(FILTER_POLICY)
#define FILTER_POLICY "seccomp/worker.def"
#endif

#define WITH_KILL_PROCESS 3          /* the API level of seccomp_api_get(3) */
#define FOREIGN_TABLE     0x40000000 /* numbers from here on are x32's */

struct compiled_rule {
	const char *name;
	int number;
	uint32_t action;
	struct scmp_arg_cmp conditions[3]; /* those with an `op` */
};

#define EQUAL(argument, value)                                                                     \
	{                                                                                          \
		(argument), SCMP_CMP_EQ, (uint64_t)(value), 0                                      \
	}
#define WITHIN(argument, mask)                                                                     \
	{                                                                                          \
		(argument), SCMP_CMP_MASKED_EQ, ~(uint64_t)(mask), 0                               \
	}
#define LACKS(argument, mask)                                                                      \
	{                                                                                          \
		(argument), SCMP_CMP_MASKED_EQ, (uint64_t)(mask), 0                                \
	}
#define FUTEX_OPERATION(name)                                                                      \
	{                                                                                          \
		1, SCMP_CMP_MASKED_EQ, ~(uint64_t)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME),     \
			(name)                                                                     \
	}
#define FUTEX_PRIVATELY(name)                                                                      \
	{                                                                                          \
		1, SCMP_CMP_MASKED_EQ, ~(uint64_t)FUTEX_CLOCK_REALTIME,                            \
			(name) | FUTEX_PRIVATE_FLAG                                                \
	}
#define SOCKET_TYPE(argument, type)                                                                \
	{                                                                                          \
		(argument), SCMP_CMP_MASKED_EQ, ~(uint64_t)(SOCK_CLOEXEC | SOCK_NONBLOCK), (type)  \
	}

/* clang-format off */
static const struct compiled_rule rules[] = {
#define ALLOW(name, reason)           {#name, SCMP_SYS(name), SCMP_ACT_ALLOW, {{0}}},
#define ALLOW_IF(name, reason, ...)   {#name, SCMP_SYS(name), SCMP_ACT_ALLOW, {__VA_ARGS__}},
#define ANSWER(name, error, reason)   {#name, SCMP_SYS(name), SCMP_ACT_ERRNO(error), {{0}}},
#define KILL(name, reason)            {#name, SCMP_SYS(name), SCMP_ACT_KILL_PROCESS, {{0}}},
#define NEWEST(number)
#include FILTER_POLICY
#undef ALLOW
#undef ALLOW_IF
#undef ANSWER
#undef KILL
#undef NEWEST
};

enum {
#define ALLOW(name, reason)
#define ALLOW_IF(name, reason, ...)
#define ANSWER(name, error, reason)
#define KILL(name, reason)
#define NEWEST(number) NEWEST_CALL = (number)
#include FILTER_POLICY
#undef ALLOW
#undef ALLOW_IF
#undef ANSWER
#undef KILL
#undef NEWEST
};

/* Calls that are younger than the policy do not exist, so that a libc falls back to older ones. */
static const struct sock_filter preamble[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 0, 4),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, NEWEST_CALL, 0, 2),
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FOREIGN_TABLE, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
};
/* clang-format on */

static void cleanup_seccomp(scmp_filter_ctx *context)
{
	if (*context)
		seccomp_release(*context);
}

static bool filter_add(scmp_filter_ctx context, const struct compiled_rule *rule,
		       struct rlmd_error *err)
{
	unsigned count = 0;
	int failure;

	while (count < sizeof rule->conditions / sizeof rule->conditions[0] &&
	       rule->conditions[count].op)
		count++;
	/* _exact: a name that this architecture lacks is an error, not a rule less. */
	failure = seccomp_rule_add_exact_array(context, rule->action, rule->number, count,
					       rule->conditions);
	if (!failure)
		return true;
	errno = -failure;
	return error_errno(err, RLMD_ERROR_SANDBOX, "the filter's rule for %s", rule->name);
}

/* Appends to `code` what libseccomp makes of the rules. */
static bool filter_export(scmp_filter_ctx context, struct filter *filter, struct rlmd_error *err)
{
	auto_close int fd = memfd_create("filter", MFD_CLOEXEC);
	size_t room = sizeof filter->code - filter->size * sizeof filter->code[0];
	ssize_t got;
	int failure;

	if (fd < 0)
		return error_errno(err, RLMD_ERROR_SANDBOX, "memfd_create");
	failure = seccomp_export_bpf(context, fd);
	if (failure) {
		errno = -failure;
		return error_errno(err, RLMD_ERROR_SANDBOX, "the filter cannot be exported");
	}
	got = pread(fd, &filter->code[filter->size], room, 0);
	if (got <= 0 || (size_t)got == room || (size_t)got % sizeof filter->code[0])
		return error_set(err, RLMD_ERROR_SANDBOX, "the filter has an impossible size: %zd",
				 got);
	filter->size += (size_t)got / sizeof filter->code[0];
	return true;
}

/* Native unless a test asks for the other one; the token is the kernel's number for it. */
static bool filter_set_architecture(scmp_filter_ctx context)
{
	return seccomp_arch_native() == FILTER_ARCH ||
	       (!seccomp_arch_add(context, FILTER_ARCH) &&
		!seccomp_arch_remove(context, seccomp_arch_native()));
}

bool filter_compile(struct filter *filter, struct rlmd_error *err)
{
	__attribute__((cleanup(cleanup_seccomp)))
	scmp_filter_ctx context = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	size_t i;

	if (!context)
		return error_set(err, RLMD_ERROR_SANDBOX, "libseccomp does not start");
	/* It is for another kernel than that of the build, which may know no such action. */
	seccomp_api_set(WITH_KILL_PROCESS);
	if (!filter_set_architecture(context))
		return error_set(err, RLMD_ERROR_SANDBOX,
				 "libseccomp does not know the architecture");
	if (seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) ||
	    seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2))
		return error_set(err, RLMD_ERROR_SANDBOX, "libseccomp is too old: 2.5 is needed");
	for (i = 0; i < sizeof rules / sizeof rules[0]; i++)
		if (!filter_add(context, &rules[i], err))
			return false;

	for (i = 0; i < sizeof preamble / sizeof preamble[0]; i++)
		filter->code[i] = preamble[i];
	filter->size = i;
	return filter_export(context, filter, err);
}
