/*
 * rlmd/group.h - jobs that share workers and calls as one, such as the jobs of a tenant.
 *
 * An engine shares its workers and its places for model calls fairly between jobs (rlmd/engine.h).
 * A group counts as one job there: it gets a share by its weight beside other groups and single
 * jobs, however many jobs it has, and divides that share between its jobs by their weights. The
 * only call of a group waits for one call to end, and then for at most one of each other group.
 */
#pragma once

#include <rlmd/engine.h>
#include <rlmd/rlmd.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rlmd_group;

struct rlmd_group_options {
	size_t size;
	unsigned weight;          /* its share beside other groups and jobs, to 1000; 0: 1 */
	int64_t max_calls;        /* model calls at once, of all its jobs; 0: the engine's number */
	int64_t calls_per_minute; /* model calls begun in any minute, with retries, without calls
				     that are answered from a cache or a journal; 0: no limit */
};

#define RLMD_GROUP_OPTIONS_INIT RLMD_INIT(struct rlmd_group_options)

/* A group of that engine. NULL options are all zero. NULL and RLMD_ERROR_USAGE for options that
 * make no sense. */
RLMD_API struct rlmd_group *rlmd_group_new(struct rlmd_engine *, const struct rlmd_group_options *,
					   struct rlmd_error *);

/* Drops the reference of rlmd_group_new(), before the engine is freed. Jobs hold references of
 * their own. NULL is fine. */
RLMD_API void rlmd_group_unref(struct rlmd_group *);

#ifdef __cplusplus
}
#endif
