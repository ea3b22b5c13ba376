/*
 * sandbox/filter.h - the sealed filter, as the kernel's bytecode.
 *
 * It is compiled when the program is built (sandbox/filter_compile.h), for
 * libseccomp answers a want of memory with a crash, with a loop without end, or
 * with a filter that lacks rules.
 */
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "sandbox/launch.h"

/* Whose calls the policy is about; a test defines another one than the compiler's. */
#if !defined(FILTER_ARCH) && defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif !defined(FILTER_ARCH) && defined(__aarch64__)
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#endif

struct filter {
	struct sock_filter code[FILTER_CODE_MAX];
	size_t size; /* instructions */
};

/* That of seccomp/worker.def; src/sandbox/filter_embed.c writes it. */
extern const struct filter filter_of_workers;

/* That of seccomp/lister.def, in the program that lists files. */
extern const struct filter filter_of_lister;

/*
 * The bytecode in a sealed memory file, for the template to read. -1 where that failed, or
 * where the kernel has no such filters.
 */
int filter_memfd(const struct filter *, struct rlmd_error *);

/* The policy of seccomp/worker.def as people read it: the rows that were compiled. */
enum { FILTER_CONDITIONS_MAX = 3 };

struct filter_rule {
	const char *call;
	const char *answer;                            /* "allow", "kill", or an errno: "ENOSYS" */
	const char *conditions[FILTER_CONDITIONS_MAX]; /* all must hold; those that are not NULL */
	const char *reason;
};

/* All rules in the order of the table; static. A call may have several: one must hold. */
const struct filter_rule *filter_rules(size_t *ret_count);

/* The last call that the policy knows; younger ones fail with ENOSYS. */
int filter_newest_call(void);
