#include "batch/accounts.h"

#include <event2/event.h>
#include <rlmd/job.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/number.h"
#include "base/timer.h"
#include "batch/lease.h"
#include "batch/tenants.h"

#define EVERYBODY "*" /* no tenant can be named so */

enum { TICK_MS = 1000 };

/* A tenant, or everybody: the first one. */
struct payer {
	struct accounts *accounts; /* lent */
	char *tenant;              /* owned */
	struct lease *day, *batch; /* owned; NULL: there is no limit */
	struct lease *lowest;      /* lent: the first one that jobs pay out of */
};

struct accounts {
	struct accounts_options options;
	struct payer **payers; /* owned, as are all of these */
	size_t count;
	struct event *tick;
	struct timer *posted;
	bool closing, over;
};

/* --- what leases tell ----------------------------------------------------------------- */

static void on_changed(void *owner, struct lease *lease)
{
	const struct payer *payer = owner;
	struct accounts *accounts = payer->accounts;
	bool everybody = payer == accounts->payers[0];

	(void)lease;
	if (accounts->closing)
		timer_post(accounts->posted);
	else
		accounts->options.changed(accounts->options.owner,
					  everybody ? NULL : payer->tenant);
}

static void on_failed(void *owner, const struct store_result *result)
{
	const struct payer *payer = owner;
	struct accounts *accounts = payer->accounts;

	if (accounts->closing)
		timer_post(accounts->posted);
	accounts->options.failed(accounts->options.owner, result);
}

/* --- who pays ------------------------------------------------------------------------- */

static int64_t amount_of(int64_t limit)
{
	return limit > 0 ? limit : limit == RLMD_NOTHING ? 0 : RLMD_UNLIMITED;
}

/* The most that a job may take. */
static struct rlmd_amount bound_of(const struct rlmd_limits *job)
{
	return job ? (struct rlmd_amount){amount_of(job->cost), amount_of(job->tokens)}
		   : (struct rlmd_amount){0};
}

static struct lease *new_lease(struct payer *payer, const char *name, int64_t batch,
			       struct rlmd_amount limit, struct lease *above)
{
	const struct accounts_options *of = &payer->accounts->options;
	const struct lease_options options = {
		.base = of->base,
		.store = of->store,
		.batch = batch,
		.tenant = payer->tenant,
		.name = name,
		.node = of->node,
		.lease_ms = 2 * of->job_lease_ms,
		.limit = limit,
		.bound = bound_of(of->job),
		.above = above,
		.changed = on_changed,
		.failed = on_failed,
		.owner = payer,
	};

	return lease_new(&options);
}

static struct payer *new_payer(struct accounts *accounts, const char *tenant)
{
	struct payer *payer = xcalloc(1, sizeof *payer);

	payer->accounts = accounts;
	payer->tenant = xstrdup(tenant);
	accounts->payers = xreallocarray(accounts->payers, accounts->count + 1,
					 sizeof(struct payer *));
	accounts->payers[accounts->count++] = payer;
	return payer;
}

/* Where nothing is said. */
static int64_t unsaid(const struct accounts *accounts)
{
	return accounts->options.keeps ? LEASE_AS_IT_IS : RLMD_UNLIMITED;
}

static void add_everybody(struct accounts *accounts)
{
	struct payer *everybody = new_payer(accounts, EVERYBODY);
	struct rlmd_amount limit = accounts->options.limit;

	if (limit.cost == RLMD_UNLIMITED)
		limit.cost = unsaid(accounts);
	if (limit.tokens == RLMD_UNLIMITED)
		limit.tokens = unsaid(accounts);
	everybody->lowest = everybody->batch = new_lease(everybody, "this batch",
							 accounts->options.batch, limit, NULL);
}

static bool is_limit(struct rlmd_amount limit)
{
	return limit.cost != RLMD_UNLIMITED || limit.tokens != RLMD_UNLIMITED;
}

static void open_leases(struct payer *payer)
{
	const struct accounts_options *options = &payer->accounts->options;
	const struct tenant *settings = options->tenants ? tenants_find(options->tenants,
									payer->tenant, NULL)
							 : NULL;
	struct rlmd_amount batch = {unsaid(payer->accounts), unsaid(payer->accounts)}, day = batch;
	auto_free char *name = xasprintf("tenant '%s'", payer->tenant);
	auto_free char *today = xasprintf("%s today", name);

	if (settings && settings->max_cost >= 0)
		batch.cost = settings->max_cost;
	if (settings && settings->max_tokens)
		batch.tokens = settings->max_tokens;
	if (settings && settings->max_cost_per_day >= 0)
		day.cost = settings->max_cost_per_day;
	if (is_limit(day))
		payer->lowest = payer->day = new_lease(payer, today, 0, day, payer->lowest);
	if (is_limit(batch))
		payer->lowest = payer->batch = new_lease(payer, name, options->batch, batch,
							 payer->lowest);
}

static struct payer *payer_of(struct accounts *accounts, const char *tenant)
{
	struct payer *payer;

	for (size_t i = 1; i < accounts->count; i++)
		if (!strcmp(accounts->payers[i]->tenant, tenant))
			return accounts->payers[i];
	payer = new_payer(accounts, tenant);
	payer->lowest = accounts->payers[0]->lowest;
	if (*tenant)
		open_leases(payer);
	return payer;
}

struct lease *accounts_of(struct accounts *accounts, const char *tenant)
{
	return payer_of(accounts, tenant)->lowest;
}

void accounts_expect(struct accounts *accounts, const char *tenant, struct rlmd_amount cost)
{
	const struct payer *payer = tenant ? payer_of(accounts, tenant) : accounts->payers[0];

	if (payer->batch)
		lease_expect(payer->batch, cost);
	if (payer->day)
		lease_expect(payer->day, cost);
}

/* --- its life ------------------------------------------------------------------------- */

static void on_tick(evutil_socket_t fd, short what, void *owner)
{
	struct accounts *accounts = owner;

	(void)fd;
	(void)what;
	for (size_t i = 0; i < accounts->count; i++) {
		struct payer *payer = accounts->payers[i];

		if (payer->batch)
			lease_tick(payer->batch);
		if (payer->day)
			lease_tick(payer->day);
	}
}

static void on_posted(void *owner)
{
	struct accounts *accounts = owner;
	bool closed = true;

	for (size_t i = 0; i < accounts->count && !accounts->over; i++) {
		struct payer *payer = accounts->payers[i];

		closed &= !payer->batch || lease_close(payer->batch);
		closed &= !payer->day || lease_close(payer->day);
	}
	if (accounts->over || !closed)
		return;
	accounts->over = true;
	accounts->options.closed(accounts->options.owner);
}

struct accounts *accounts_new(const struct accounts_options *options)
{
	const struct timeval often = clock_timeval(int64_min(options->job_lease_ms / 3, TICK_MS));
	struct accounts *accounts = xcalloc(1, sizeof *accounts);

	accounts->options = *options;
	accounts->tick = loop_event(options->base, -1, EV_PERSIST, on_tick, accounts);
	accounts->posted = timer_new(options->base, on_posted, accounts);
	loop_add(accounts->tick, &often);
	add_everybody(accounts);
	return accounts;
}

void accounts_close(struct accounts *accounts)
{
	accounts->closing = true;
	event_del(accounts->tick);
	timer_post(accounts->posted);
}

void accounts_free(struct accounts *accounts)
{
	if (!accounts)
		return;
	for (size_t i = 0; i < accounts->count; i++) {
		lease_free(accounts->payers[i]->batch);
		lease_free(accounts->payers[i]->day);
		free(accounts->payers[i]->tenant);
		free(accounts->payers[i]);
	}
	free(accounts->payers);
	event_free(accounts->tick);
	timer_free(accounts->posted);
	free(accounts);
}
