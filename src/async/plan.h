/*
 * async/plan.h - a plan that was checked, as executions see it.
 *
 * Operations are known by their index. Dependencies are kept in both directions, as one array of
 * indices each with a table of where an operation's part begins.
 */
#pragma once

#include <rlmd/plan.h>

struct plan_edges {
	uint32_t *starts; /* owned: one more than there are operations */
	uint32_t *others; /* owned: indices */
};

struct plan_name {
	uint64_t hash;
	uint32_t index;
};

struct rlmd_plan {
	struct rlmd_operation *operations; /* owned; their texts are lent */
	size_t count;
	enum rlmd_plan_strategy strategy;
	bool ordered;            /* dependencies are followed */
	struct plan_name *names; /* owned: who has an id; sorted by hash, then id */
	size_t name_count;
	struct plan_edges dependencies; /* what each needs */
	struct plan_edges dependents;   /* who needs each; empty where they are not followed */
	bool *filled;                   /* owned: its input has something to substitute */
	bool *quoted;                   /* owned: its response is put into some input */
};

/* The index of the operation with this id, or RLMD_PLAN_NOBODY. */
size_t plan_find(const struct rlmd_plan *, struct rlmd_text id);

static inline const uint32_t *plan_others(const struct plan_edges *edges, size_t index,
					  size_t *ret_count)
{
	*ret_count = edges->starts[index + 1] - edges->starts[index];
	return edges->others + edges->starts[index];
}
