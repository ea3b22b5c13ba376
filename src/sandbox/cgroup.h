/*
 * sandbox/cgroup.h - what all workers together may use, in the kernel's own accounts.
 *
 * One cgroup for the template, which its workers are born into. None for each
 * of them: to move a process waits for the whole machine, for milliseconds, and
 * would be most of a worker's start. It is made below our own cgroup, in v1 and
 * v2 alike, and is locked while we live, so that a later one of us, in
 * whatever pid namespace, tells what a killed one has left from what is in use.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/text.h"
#include "sandbox/steps.h"

struct cgroup_limits {
	uint64_t memory;       /* bytes */
	uint64_t threads;      /* and processes */
	const struct log *log; /* lent for the cgroup's life: hears of what was swept; or NULL */
};

struct cgroup;

/* Never NULL: it may be without any controller. Refused steps are in `steps`. */
struct cgroup *cgroup_new(const struct cgroup_limits *, struct steps *);
void cgroup_free(struct cgroup *); /* when no process is in it any more; NULL is fine */

/* In the child of a fork, before it is freed: nothing that the parent uses is touched any more. */
void cgroup_cut(struct cgroup *);

/* Moves a process in, before it makes others. Which controller refused it is in `steps`. */
void cgroup_join(struct cgroup *, pid_t, struct steps *);

uint32_t cgroup_layers(const struct cgroup *); /* a bit each */

/* How many of its processes the kernel has killed so far for want of memory. */
int64_t cgroup_kills(const struct cgroup *);

/* The smallest limit on memory that we are under ourselves, in bytes; UINT64_MAX: none. */
uint64_t cgroup_memory_above(void);
/* The same for a directory of cgroup_directory(). */
uint64_t cgroup_memory_limit(const char *lowest, bool unified);

/*
 * The directory, new, of our own cgroup for a controller, out of /proc/self/cgroup
 * and /proc/self/mountinfo; NULL where there is none.
 */
char *cgroup_directory(const char *controller, struct rlmd_text memberships,
		       struct rlmd_text mounts, bool *ret_unified);
