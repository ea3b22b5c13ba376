/* engine/group.h - the inside of rlmd/group.h: a flow above those of its jobs. */
#pragma once

#include <rlmd/group.h>

struct flow;

struct rlmd_group {
	struct rlmd_engine *engine;   /* lent */
	struct flow *calls, *workers; /* owned */
	int references;               /* its maker's, and one of each job */
};

struct rlmd_group *group_ref(struct rlmd_group *); /* NULL is fine */
void group_unref(struct rlmd_group *);             /* likewise */
