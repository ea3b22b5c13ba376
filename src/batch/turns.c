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

void turns_stop(struct turns *turns, struct turn *turn, enum turn_stop stop, int64_t ends_ms)
{
	if (turn_is_over(turn) && stop)
		return;
	turn->stop = stop;
	turn->stop_ends_ms = ends_ms;
	if (stop)
		turn->ready = false;
	else
		turns_wake(turns, turn);
}

bool turn_is_over(const struct turn *turn)
{
	return turn->stop && turn->stop_ends_ms == INT64_MAX;
}

/* When something changes for it by itself. */
static int64_t due(const struct turn *turn)
{
	if (turn->stop)
		return turn->stop_ends_ms;
	return turn->ready ? INT64_MAX : turn->due_ms;
}

int64_t turns_wake_due(struct turns *turns, int64_t now_ms)
{
	int64_t next = INT64_MAX;

	for (size_t i = 0; i < turns->count; i++) {
		struct turn *turn = turns->tenants[i];

		if (due(turn) == INT64_MAX)
			continue;
		if (due(turn) > now_ms) {
			next = due(turn) < next ? due(turn) : next;
			continue;
		}
		turn->stop = TURN_GOES_ON;
		turns_wake(turns, turn);
	}
	return next;
}

static bool goes_before(const struct turn *turn, const struct turn *other)
{
	int64_t has = turn->at_work * other->weight, others = other->at_work * turn->weight;

	return has < others || (has == others && turn->passed < other->passed);
}

/* Those that have none at work, and will want a place. */
static int64_t kept(const struct turns *turns)
{
	int64_t count = 0;

	for (size_t i = 0; i < turns->count; i++) {
		const struct turn *turn = turns->tenants[i];

		count += !turn->at_work && !turn->stop &&
			 (turn->ready || turn->due_ms != INT64_MAX);
	}
	return count;
}

bool turns_any(const struct turns *turns)
{
	for (size_t i = 0; i < turns->count; i++)
		if (turns->tenants[i]->ready)
			return true;
	return false;
}

struct turn *turns_next(struct turns *turns, int64_t free)
{
	struct turn *first = NULL;

	for (size_t i = 0; i < turns->count; i++) {
		struct turn *turn = turns->tenants[i];

		if (turn->ready && !turn->stop && (!first || goes_before(turn, first)))
			first = turn;
	}
	if (!first || (first->at_work && free <= kept(turns)))
		return NULL;
	if (turns->now < first->passed)
		turns->now = first->passed;
	first->passed += (uint64_t)(ROUND / first->weight);
	return first;
}
