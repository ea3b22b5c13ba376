/*
 * batch/concurrency.h - how many jobs at once this machine can have: by the memory that it, or the
 * cgroup that we are in, has left, and by the descriptors that we may have.
 *
 * Memory that the kernel could free at once counts as left: caches of files that nobody has
 * changed.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stdint.h>

/* Where the kernel tells it: "/proc" and "/sys/fs/cgroup", but in tests. */
struct concurrency_roots {
	const char *proc, *cgroups;
};

extern const struct concurrency_roots concurrency_here;

/* Bytes: the least of what the machine has and what each cgroup that we are in, of version 1 or 2,
 * leaves of its limit. INT64_MAX where nothing is told. */
int64_t concurrency_bytes(const struct concurrency_roots *);

enum { CONCURRENCY_JOB = 32 << 20 }; /* bytes that a job is thought to take, before it is seen */

/* Descriptors that a process at work on a batch has for itself, and for each job: a worker's pipes,
 * its process and its state, a context, a connection. */
enum { CONCURRENCY_OWN_FILES = 32, CONCURRENCY_JOB_FILES = 6 };

/* The process that begins jobs, and how much they must leave free. Begins as zero but for the
 * members that come first. */
struct concurrency {
	const struct concurrency_roots *roots;
	int64_t reserve; /* bytes that are to be left; 0: any number of jobs may begin */
	int64_t limit;   /* jobs at once: read it */
	/* private */
	int64_t max;          /* jobs that were asked for, or that there can be */
	int64_t ended;        /* jobs, since `limit` changed last */
	bool warned;          /* that the machine cannot have more */
	int64_t bytes, begun; /* what was left when it was looked last; jobs since then */
	int64_t looked_ms;
};

/* Whether one more job may begin. It is looked anew ten times a second. */
bool concurrency_admits(struct concurrency *, int64_t now_ms);
void concurrency_begin(struct concurrency *); /* one does */

/* For this machine: so many bytes are to be left, and so many jobs at once are asked for. Where
 * there are fewer descriptors (RLIMIT_NOFILE) than they take, `limit` is less, one at least, and
 * the text, new, says so; else NULL. */
char *concurrency_open(struct concurrency *, int64_t reserve, int64_t jobs);

/* The machine had no more of something that a job needs, beside so many at work: `limit` is less
 * from now on. The first time a text, new, says so; else NULL. */
char *concurrency_lower(struct concurrency *, int64_t at_work, const struct rlmd_error *);

/* A job has ended: each time that `limit` of them have, `limit` is one more, up to `max`. */
void concurrency_raise(struct concurrency *);
