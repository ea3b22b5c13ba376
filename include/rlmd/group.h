/*
 * rlmd/group.h - jobs that share as one: those of a tenant, say.
 *
 * Workers that compute and model calls in flight are an engine's, and jobs have them in turns
 * (rlmd/engine.h). Jobs of a group have their turns below it: a group shares by its weight with
 * other groups, and with jobs that are in none, however many jobs or calls it has in line; its
 * jobs share by their own weights what it gets. Somebody's only call waits for one that is under
 * way to end, and then behind one of each other group at most.
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
	int64_t calls_per_minute; /* model calls that are begun in any minute, attempts that are
				     made again too; 0: any number. What was answered before
				     does not count */
};

/* A group of that engine. NULL options are all zero. NULL and RLMD_ERROR_USAGE for options that
 * make no sense. */
RLMD_API struct rlmd_group *rlmd_group_new(struct rlmd_engine *, const struct rlmd_group_options *,
					   struct rlmd_error *);

/* Its maker needs it no more, before the engine is freed. It lives on while jobs are in it. NULL
 * is fine. */
RLMD_API void rlmd_group_free(struct rlmd_group *);

#ifdef __cplusplus
}
#endif
