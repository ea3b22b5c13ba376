#include "batch/purse.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/money.h"
#include "base/number.h"
#include "batch/fund.h"
#include "batch/tenants.h"

/* No tenant can be named so. */
#define EVERYBODY "*"

enum { TICK_MS = 1000 };

enum { ENOUGH = 2 }; /* jobs in turn that could not go on alone: it is not one that is too large */

struct purse_tenant {
	struct purse *purse;             /* lent */
	char *name;                      /* owned */
	struct fund *funds[PURSE_FUNDS]; /* owned but the last, which is the purse's; NULL: none */
	int refusals;                    /* jobs in turn that could not go on, alone */
	bool told;                       /* why none is begun any more */
};

struct purse {
	struct purse_options options;
	struct purse_tenant **tenants; /* owned, as are all of these */
	size_t count;
	struct fund *everybody;
	struct event *tick, *posted;
	bool told; /* why nobody's are */
	bool closing, over;
};

/* --- funds -------------------------------------------------------------------------- */

static void on_changed(void *owner, struct fund *fund)
{
	struct purse_tenant *tenant = owner;
	struct purse *purse = tenant->purse;

	(void)fund;
	if (purse->closing)
		loop_post(purse->posted);
	else
		purse->options.changed(purse->options.owner, tenant->name);
}

static void on_everybody_changed(void *owner, struct fund *fund)
{
	struct purse *purse = owner;

	(void)fund;
	if (purse->closing)
		loop_post(purse->posted);
	else
		purse->options.changed(purse->options.owner, NULL);
}

static void on_failed(void *owner, const struct store_result *result)
{
	struct purse_tenant *tenant = owner;
	struct purse *purse = tenant->purse;

	if (purse->closing)
		loop_post(purse->posted);
	purse->options.failed(purse->options.owner, result);
}

static void on_everybody_failed(void *owner, const struct store_result *result)
{
	struct purse *purse = owner;

	if (purse->closing)
		loop_post(purse->posted);
	purse->options.failed(purse->options.owner, result);
}

static int64_t unsaid(const struct purse *purse)
{
	return purse->options.keeps ? FUND_AS_IT_IS : RLMD_UNLIMITED;
}

static bool is_limit(struct rlmd_amount limit)
{
	return limit.cost != RLMD_UNLIMITED || limit.tokens != RLMD_UNLIMITED;
}

static struct fund *tenant_fund(struct purse_tenant *tenant, int64_t batch, const char *when,
				struct rlmd_amount limit, const struct fund *above)
{
	const struct purse_options *of = &tenant->purse->options;
	auto_free char *name = xasprintf("tenant '%s'%s", tenant->name, when);
	const struct fund_options options = {
		.base = of->base,
		.store = of->store,
		.batch = batch,
		.tenant = tenant->name,
		.name = name,
		.node = of->node,
		.lease_ms = 2 * of->job_lease_ms,
		.limit = limit,
		.above = above ? fund_account(above) : NULL,
		.changed = on_changed,
		.failed = on_failed,
		.owner = tenant,
	};

	return is_limit(limit) ? fund_new(&options) : NULL;
}

static struct fund *everybodys_fund(struct purse *purse)
{
	const struct purse_options *of = &purse->options;
	const int64_t none = unsaid(purse);
	const struct fund_options options = {
		.base = of->base,
		.store = of->store,
		.batch = of->batch,
		.tenant = EVERYBODY,
		.name = "this batch",
		.node = of->node,
		.lease_ms = 2 * of->job_lease_ms,
		.limit = {of->limit.cost == RLMD_UNLIMITED ? none : of->limit.cost,
			  of->limit.tokens == RLMD_UNLIMITED ? none : of->limit.tokens},
		.changed = on_everybody_changed,
		.failed = on_everybody_failed,
		.owner = purse,
	};

	return fund_new(&options);
}

/* --- tenants ------------------------------------------------------------------------ */

static const struct tenant *settings_of(const struct purse *purse, const char *name)
{
	const struct tenants *tenants = purse->options.tenants;

	return tenants && *name ? tenants_find(tenants, name, NULL) : NULL;
}

static struct purse_tenant *add(struct purse *purse, const char *name)
{
	const struct tenant *settings = settings_of(purse, name);
	struct rlmd_amount batch = {unsaid(purse), unsaid(purse)}, day = batch;
	struct purse_tenant *tenant = xcalloc(1, sizeof *tenant);

	tenant->purse = purse;
	tenant->name = xstrdup(name);
	if (settings && settings->max_cost >= 0)
		batch.cost = settings->max_cost;
	if (settings && settings->max_tokens)
		batch.tokens = settings->max_tokens;
	if (settings && settings->max_cost_per_day >= 0)
		day.cost = settings->max_cost_per_day;
	tenant->funds[2] = purse->everybody;
	if (*name) {
		tenant->funds[1] = tenant_fund(tenant, 0, " today", day, purse->everybody);
		tenant->funds[0] = tenant_fund(tenant, purse->options.batch, "", batch,
					       tenant->funds[1] ? tenant->funds[1]
								: purse->everybody);
	}
	purse->tenants = xreallocarray(purse->tenants, purse->count + 1, sizeof *purse->tenants);
	purse->tenants[purse->count++] = tenant;
	return tenant;
}

struct purse_tenant *purse_get(struct purse *purse, const char *name)
{
	for (size_t i = 0; i < purse->count; i++)
		if (!strcmp(purse->tenants[i]->name, name))
			return purse->tenants[i];
	return add(purse, name);
}

/* The first fund that jobs pay out of. */
static const struct fund *lowest(const struct purse_tenant *tenant)
{
	size_t i = 0;

	while (!tenant->funds[i])
		i++;
	return tenant->funds[i];
}

/* --- whether there is money ---------------------------------------------------------- */

/* What is to be done about it; `of` says what the limit is of. */
static char *remedy_of(size_t place, const char *kind, const char **ret_of)
{
	static const char *const of[PURSE_FUNDS] = {" of this batch", " a day", ""};

	*ret_of = of[place];
	if (place == 0)
		return xasprintf("its jobs stay pending, and a higher max-%s in rlmd.conf lets the "
				 "next start go on with them",
				 kind);
	if (place == 1)
		return xasprintf("its jobs stay pending for a start on another day (UTC), or with "
				 "a higher max-%s-per-day in rlmd.conf",
				 kind);
	return xasprintf("jobs stay pending, and a higher --max-batch-%s lets the next start go on "
			 "with them",
			 kind);
}

static char *why(const struct purse_tenant *tenant, size_t place)
{
	const struct fund *fund = tenant->funds[place];
	bool cost = fund_lacks(fund) != RLMD_STOP_MAX_TOKENS;
	auto_free char *remedy = NULL;
	const char *of = "";
	char limit[32];

	remedy = remedy_of(place, cost ? "cost" : "tokens", &of);
	money_format(fund_limit(fund).cost, limit);
	if (!cost)
		snprintf(limit, sizeof limit, "%" PRId64 " tokens", fund_limit(fund).tokens);
	return xasprintf("the limit of %s, %s%s, is reached: %s",
			 rlmd_account_name(fund_account(fund)), limit, of, remedy);
}

/* Of each tenant, and of all. */
static bool was_told(struct purse_tenant *tenant, size_t place)
{
	bool *told = place == PURSE_FUNDS - 1 ? &tenant->purse->told : &tenant->told;
	bool before = *told;

	*told = true;
	return before;
}

enum purse_state purse_look(struct purse_tenant *tenant, struct purse_lack *ret)
{
	enum purse_state state = PURSE_READY;

	for (size_t i = 0; i < PURSE_FUNDS; i++) {
		struct fund *fund = tenant->funds[i];

		switch (fund ? fund_look(fund, &ret->again_ms) : FUND_READY) {
		case FUND_READY:
			break;
		case FUND_OPENS:
			state = PURSE_WAITS;
			break;
		case FUND_EMPTY:
			if (ret->again_ms == INT64_MAX) {
				ret->why = why(tenant, i);
				ret->told = was_told(tenant, i);
			}
			return PURSE_EMPTY;
		}
	}
	return state;
}

struct rlmd_account *purse_use(struct purse_tenant *tenant)
{
	for (size_t i = 0; i < PURSE_FUNDS; i++)
		if (tenant->funds[i])
			fund_use(tenant->funds[i]);
	return fund_account(lowest(tenant));
}

void purse_leave(struct purse_tenant *tenant, bool succeeded)
{
	const struct purse_options *options = &tenant->purse->options;
	bool everybody = fund_is_tight(tenant->purse->everybody);

	for (size_t i = 0; i < PURSE_FUNDS; i++)
		if (tenant->funds[i])
			fund_leave(tenant->funds[i]);
	if (succeeded)
		tenant->refusals = 0;
	options->changed(options->owner, everybody ? NULL : tenant->name);
}

void purse_note_short(struct purse_tenant *tenant, const char *account, enum rlmd_stop kind)
{
	for (size_t i = 0; i < PURSE_FUNDS; i++) {
		struct fund *fund = tenant->funds[i];

		if (fund && !strcmp(rlmd_account_name(fund_account(fund)), account) &&
		    !fund_narrow(fund) && ++tenant->refusals >= ENOUGH)
			fund_note_short(fund, kind);
	}
}

/* --- what was billed ------------------------------------------------------------------ */

struct purse_bill purse_pay(struct purse_tenant *tenant, struct rlmd_amount amount)
{
	struct purse_bill bill = {.amount = amount};

	for (size_t i = 0; i < PURSE_FUNDS; i++)
		if (tenant->funds[i])
			bill.leases[i] = fund_pay(tenant->funds[i], amount);
	return bill;
}

void purse_paid(struct purse_tenant *tenant, const struct purse_bill *bill, bool kept)
{
	for (size_t i = 0; i < PURSE_FUNDS; i++)
		if (tenant->funds[i])
			fund_paid(tenant->funds[i], bill->leases[i], bill->amount, kept);
}

/* --- its life ------------------------------------------------------------------------- */

static void on_tick(evutil_socket_t fd, short what, void *owner)
{
	struct purse *purse = owner;

	(void)fd;
	(void)what;
	for (size_t i = 0; i < purse->count; i++)
		for (size_t j = 0; j < PURSE_FUNDS - 1; j++)
			if (purse->tenants[i]->funds[j])
				fund_tick(purse->tenants[i]->funds[j]);
	fund_tick(purse->everybody);
}

static bool close_all(struct purse *purse)
{
	bool closed = fund_close(purse->everybody);

	for (size_t i = 0; i < purse->count; i++)
		for (size_t j = 0; j < PURSE_FUNDS - 1; j++)
			if (purse->tenants[i]->funds[j])
				closed &= fund_close(purse->tenants[i]->funds[j]);
	return closed;
}

static void on_posted(evutil_socket_t fd, short what, void *owner)
{
	struct purse *purse = owner;

	(void)fd;
	(void)what;
	if (purse->over || !close_all(purse))
		return;
	purse->over = true;
	purse->options.closed(purse->options.owner);
}

struct purse *purse_new(const struct purse_options *options)
{
	const struct timeval often = clock_timeval(int64_min(options->job_lease_ms / 3, TICK_MS));
	struct purse *purse = xcalloc(1, sizeof *purse);

	purse->options = *options;
	purse->everybody = everybodys_fund(purse);
	purse->tick = event_new(options->base, -1, EV_PERSIST, on_tick, purse);
	purse->posted = event_new(options->base, -1, 0, on_posted, purse);
	event_add(purse->tick, &often);
	return purse;
}

void purse_close(struct purse *purse)
{
	purse->closing = true;
	event_del(purse->tick);
	loop_post(purse->posted);
}

static void free_tenant(struct purse_tenant *tenant)
{
	for (size_t i = 0; i < PURSE_FUNDS - 1; i++)
		fund_free(tenant->funds[i]);
	free(tenant->name);
	free(tenant);
}

void purse_free(struct purse *purse)
{
	if (!purse)
		return;
	for (size_t i = 0; i < purse->count; i++)
		free_tenant(purse->tenants[i]);
	free(purse->tenants);
	fund_free(purse->everybody);
	event_free(purse->tick);
	event_free(purse->posted);
	free(purse);
}
