/*
 * batch/headroom.h - how much memory this machine, or the cgroup that we are in, has left.
 *
 * What the kernel could free at once counts as left: caches of files that nobody has changed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Where the kernel tells it: "/proc" and "/sys/fs/cgroup", but in tests. */
struct headroom_places {
	const char *proc, *cgroups;
};

extern const struct headroom_places headroom_here;

/* Bytes: the least of what the machine has and what each cgroup that we are in, of version 1 or 2,
 * leaves of its limit. INT64_MAX where nothing is told. */
int64_t headroom_bytes(const struct headroom_places *);

enum { HEADROOM_JOB = 32 << 20 }; /* bytes that a job is thought to take, before it is seen */

/* Who begins jobs, and how much they are to leave. Zero but for what is said first. */
struct headroom {
	const struct headroom_places *places;
	int64_t reserve; /* bytes that are to be left; 0: any number of jobs may begin */
	/* private */
	int64_t bytes, begun; /* what was left when it was looked last; jobs since then */
	int64_t looked_ms;
};

/* Whether one more job may begin. It is looked anew ten times a second. */
bool headroom_admits(struct headroom *, int64_t now_ms);
void headroom_begin(struct headroom *); /* one does */
