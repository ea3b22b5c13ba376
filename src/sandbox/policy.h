/*
 * sandbox/policy.h - the sealed filter's table as people read it.
 *
 * The rows are those of seccomp/worker.def, which sandbox/filter.c compiles: what
 * is printed from here is what stands.
 */
#pragma once

#include <stddef.h>

enum { POLICY_CONDITIONS_MAX = 3 };

struct policy_rule {
	const char *call;
	const char *answer;                            /* "allow", "kill", or an errno: "ENOSYS" */
	const char *conditions[POLICY_CONDITIONS_MAX]; /* all must hold; those that are not NULL */
	const char *reason;
};

/* All rules in the order of the table; static. A call may have several: one must hold. */
const struct policy_rule *policy_rules(size_t *ret_count);

/* The last call that the policy knows; younger ones fail with ENOSYS. */
int policy_newest_call(void);
