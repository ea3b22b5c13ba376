#include "batch/fair_queue.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/text.h"

enum { ROUND = 1 << 20 }; /* what a claim of a tenant of weight 1 counts */

void fair_queue_done(struct fair_queue *queue)
{
	for (size_t i = 0; i < queue->count; i++) {
		free(queue->tenants[i]->name);
		free(queue->tenants[i]);
	}
	free(queue->tenants);
	*queue = (struct fair_queue){0};
}

static struct fair_tenant *add(struct fair_queue *queue, struct rlmd_text name)
{
	struct fair_tenant *tenant = xcalloc(1, sizeof *tenant);

	tenant->name = xstrndup(name.bytes, name.size);
	tenant->weight = 1;
	tenant->due_ms = INT64_MAX;
	queue->tenants = xreallocarray(queue->tenants, queue->count + 1,
				       sizeof(struct fair_tenant *));
	queue->tenants[queue->count++] = tenant;
	return tenant;
}

struct fair_tenant *fair_queue_get(struct fair_queue *queue, struct rlmd_text name)
{
	for (size_t i = 0; i < queue->count; i++)
		if (text_equal(name, queue->tenants[i]->name))
			return queue->tenants[i];
	return add(queue, name);
}

void fair_queue_wake(struct fair_queue *queue, struct fair_tenant *tenant)
{
	if (tenant->ready)
		return;
	tenant->ready = true;
	tenant->due_ms = INT64_MAX;
	if (tenant->passed < queue->now)
		tenant->passed = queue->now;
}

void fair_queue_stop(struct fair_queue *queue, struct fair_tenant *tenant, enum tenant_stop stop,
		     int64_t ends_ms)
{
	if (fair_queue_is_over(tenant) && stop)
		return;
	tenant->stop = stop;
	tenant->stop_ends_ms = ends_ms;
	if (stop)
		tenant->ready = false;
	else
		fair_queue_wake(queue, tenant);
}

bool fair_queue_is_over(const struct fair_tenant *tenant)
{
	return tenant->stop && tenant->stop_ends_ms == INT64_MAX;
}

/* When something changes for it by itself. */
static int64_t due(const struct fair_tenant *tenant)
{
	if (tenant->stop)
		return tenant->stop_ends_ms;
	return tenant->ready ? INT64_MAX : tenant->due_ms;
}

void fair_queue_wake_due(struct fair_queue *queue, int64_t now_ms)
{
	for (size_t i = 0; i < queue->count; i++) {
		struct fair_tenant *tenant = queue->tenants[i];

		if (due(tenant) > now_ms)
			continue;
		tenant->stop = TENANT_STOP_NONE;
		fair_queue_wake(queue, tenant);
	}
}

int64_t fair_queue_due(const struct fair_queue *queue)
{
	int64_t next = INT64_MAX;

	for (size_t i = 0; i < queue->count; i++)
		next = int64_min(next, due(queue->tenants[i]));
	return next;
}

static bool goes_before(const struct fair_tenant *tenant, const struct fair_tenant *other)
{
	int64_t has = tenant->at_work * other->weight, others = other->at_work * tenant->weight;

	return has < others || (has == others && tenant->passed < other->passed);
}

/* Those that have none at work, and will want a place. */
static int64_t kept(const struct fair_queue *queue)
{
	int64_t count = 0;

	for (size_t i = 0; i < queue->count; i++) {
		const struct fair_tenant *tenant = queue->tenants[i];

		count += !tenant->at_work && !tenant->stop &&
			 (tenant->ready || tenant->due_ms != INT64_MAX);
	}
	return count;
}

bool fair_queue_any(const struct fair_queue *queue)
{
	for (size_t i = 0; i < queue->count; i++)
		if (queue->tenants[i]->ready)
			return true;
	return false;
}

struct fair_tenant *fair_queue_next(struct fair_queue *queue, int64_t free)
{
	struct fair_tenant *first = NULL;

	for (size_t i = 0; i < queue->count; i++) {
		struct fair_tenant *tenant = queue->tenants[i];

		if (tenant->ready && !tenant->stop && (!first || goes_before(tenant, first)))
			first = tenant;
	}
	if (!first || (first->at_work && free <= kept(queue)))
		return NULL;
	if (queue->now < first->passed)
		queue->now = first->passed;
	first->passed += (uint64_t)(ROUND / first->weight);
	return first;
}
