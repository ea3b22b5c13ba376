/*
 * batch/headroom.h - how many jobs at once this machine has room for: how much memory it, or the
 * cgroup that we are in, has left, and how many descriptors we may have.
 *
 * What the kernel could free at once counts as left: caches of files that nobody has changed.
 */
#pragma once

#include <rlmd/rlmd.h>
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

/* Descriptors that a process at work on a batch has for itself, and for each job: a worker's pipes,
 * its process and its state, a context, a connection. */
enum { HEADROOM_OWN_FILES = 32, HEADROOM_JOB_FILES = 6 };

/* The process that begins jobs, and how much they must leave free. Begins as zero but for the
 * members that come first. */
struct headroom {
	const struct headroom_places *places;
	int64_t reserve; /* bytes that are to be left; 0: any number of jobs may begin */
	int64_t room;    /* jobs at once: read it */
	/* private */
	int64_t most;         /* jobs that were asked for, or that there can be */
	int64_t thrived;      /* that ended since `room` changed last */
	bool told;            /* that the machine cannot have more */
	int64_t bytes, begun; /* what was left when it was looked last; jobs since then */
	int64_t looked_ms;
};

/* Whether one more job may begin. It is looked anew ten times a second. */
bool headroom_admits(struct headroom *, int64_t now_ms);
void headroom_begin(struct headroom *); /* one does */

/* For this machine: so many bytes are to be left, and so many jobs at once are asked for. Where
 * there are fewer descriptors (RLIMIT_NOFILE) than they take, `room` is less, one at least, and the
 * text, new, says so; else NULL. */
char *headroom_open(struct headroom *, int64_t reserve, int64_t jobs);

/* The machine had no more of something that a job needs, beside so many at work: `room` is less
 * from now on. The first time a text, new, says so; else NULL. */
char *headroom_want(struct headroom *, int64_t at_work, const struct rlmd_error *);

/* A job has ended: there is room for one more again each time that `room` of them have. */
void headroom_thrive(struct headroom *);
