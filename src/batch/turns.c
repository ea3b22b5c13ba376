#include "batch/turns.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/text.h"

enum { ROUND = 1 << 20 }; /* what a claim of a tenant of weight 1 counts */

void turns_done(struct turns *turns)
{
	for (size_t i = 0; i < turns->count; i++) {
		free(turns->tenants[i]->tenant);
		free(turns->tenants[i]);
	}
	free(turns->tenants);
	*turns = (struct turns){0};
}

static struct turn *add(struct turns *turns, struct rlmd_text tenant)
{
	struct turn *turn = xcalloc(1, sizeof *turn);

	turn->tenant = xstrndup(tenant.bytes, tenant.size);
	turn->weight = 1;
	turn->due_ms = INT64_MAX;
	turns->tenants = xreallocarray(turns->tenants, turns->count + 1, sizeof(struct turn *));
	turns->tenants[turns->count++] = turn;
	return turn;
}

struct turn *turns_get(struct turns *turns, struct rlmd_text tenant)
{
	for (size_t i = 0; i < turns->count; i++)
		if (text_equal(tenant, turns->tenants[i]->tenant))
			return turns->tenants[i];
	return add(turns, tenant);
}

void turns_wake(struct turns *turns, struct turn *turn)
{
	if (turn->ready)
		return;
	turn->ready = true;
	turn->due_ms = INT64_MAX;
	if (turn->passed < turns->now)
		turn->passed = turns->now;
}

int64_t turns_wake_due(struct turns *turns, int64_t now_ms)
{
	int64_t next = INT64_MAX;

	for (size_t i = 0; i < turns->count; i++) {
		struct turn *turn = turns->tenants[i];

		if (turn->stopped || turn->ready)
			continue;
		if (turn->due_ms <= now_ms)
			turns_wake(turns, turn);
		else if (turn->due_ms < next)
			next = turn->due_ms;
	}
	return next;
}

struct turn *turns_next(struct turns *turns)
{
	struct turn *first = NULL;

	for (size_t i = 0; i < turns->count; i++) {
		struct turn *turn = turns->tenants[i];

		if (turn->ready && !turn->stopped && (!first || turn->passed < first->passed))
			first = turn;
	}
	if (!first)
		return NULL;
	turns->now = first->passed;
	first->passed += (uint64_t)(ROUND / first->weight);
	return first;
}
