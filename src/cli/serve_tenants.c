#include "cli/serve_tenants.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/timer.h"
#include "cli/job_settings.h"
#include "cli/providers.h"
#include "cli/session.h"
#include "cli/tell.h"

enum { DAY_MS = 24 * 60 * 60 * 1000, LOOK_MS = 60 * 1000 };

struct tenant_accounts {
	const struct tenancy *tenancy;    /* lent */
	struct rlmd_account *total, *day; /* owned; NULL: it has no such limit */
};

struct serve_tenants {
	struct session *session;          /* lent */
	struct tenancies *tenancies;      /* owned */
	struct tenant_accounts *accounts; /* owned */
	size_t count;
	struct timer *midnight; /* owned */
	int64_t today;          /* since 1970, in UTC */
};

/* --- what they have of their own --------------------------------------------------------- */

static struct rlmd_sandbox *open_sandbox(void *owner, const struct tenancy_needs *needs,
					 struct rlmd_error *err)
{
	const struct serve_tenants *tenants = owner;
	struct rlmd_sandbox_options options = job_settings_tenant(&tenants->session->config, needs);

	return rlmd_engine_sandbox(tenants->session->engine, &options, err);
}

static struct rlmd_provider *open_provider(void *owner, const char *kind, const char *key_file,
					   struct rlmd_error *err)
{
	const struct serve_tenants *tenants = owner;

	return providers_other(&tenants->session->config, kind, key_file, err);
}

/* --- their money ------------------------------------------------------------------------- */

static int64_t day_now(void)
{
	return clock_wall_ms() / DAY_MS;
}

/* Spending of the days before does not count on this one. */
static void set_day(const struct tenant_accounts *accounts)
{
	struct rlmd_spending spent = RLMD_SPENDING_INIT;
	struct rlmd_account_limits limits = RLMD_ACCOUNT_LIMITS_INIT;
	int64_t allowed = accounts->tenancy->settings->max_cost_per_day;

	rlmd_account_save(accounts->day, &spent, NULL);
	limits.cost = allowed < INT64_MAX - spent.cost ? allowed + spent.cost : RLMD_UNLIMITED;
	if (!limits.cost)
		limits.cost = RLMD_NOTHING;
	rlmd_account_set_limits(accounts->day, &limits, NULL);
}

static void look_at_day(struct serve_tenants *tenants)
{
	int64_t now = day_now();

	if (tenants->today == now)
		return;
	tenants->today = now;
	for (size_t i = 0; i < tenants->count; i++)
		if (tenants->accounts[i].day)
			set_day(&tenants->accounts[i]);
}

static void on_look(void *owner)
{
	struct serve_tenants *tenants = owner;

	look_at_day(tenants);
	timer_start(tenants->midnight, LOOK_MS);
}

static void open_accounts(struct tenant_accounts *accounts)
{
	const struct tenant *settings = accounts->tenancy->settings;
	auto_free char *name = xasprintf("tenant '%s'", settings->name);
	auto_free char *today = xasprintf("%s today", name);
	struct rlmd_account_limits limits = RLMD_ACCOUNT_LIMITS_INIT;

	if (settings->max_cost_per_day >= 0) {
		accounts->day = rlmd_account_new(today, NULL, NULL, NULL);
		set_day(accounts);
	}
	if (settings->max_cost >= 0)
		limits.cost = settings->max_cost ? settings->max_cost : RLMD_NOTHING;
	limits.tokens = settings->max_tokens;
	if (limits.cost || limits.tokens)
		accounts->total = rlmd_account_new(name, &limits, accounts->day, NULL);
}

static struct tenant_accounts *accounts_of_tenant(struct serve_tenants *tenants,
						  const struct tenancy *tenancy)
{
	struct tenant_accounts *accounts;

	for (size_t i = 0; i < tenants->count; i++)
		if (tenants->accounts[i].tenancy == tenancy)
			return &tenants->accounts[i];
	tenants->accounts = xreallocarray(tenants->accounts, tenants->count + 1,
					  sizeof *tenants->accounts);
	accounts = &tenants->accounts[tenants->count++];
	*accounts = (struct tenant_accounts){.tenancy = tenancy};
	open_accounts(accounts);
	return accounts;
}

struct rlmd_account *serve_tenants_account(struct serve_tenants *tenants,
					   const struct tenancy *tenancy)
{
	const struct tenant_accounts *accounts = accounts_of_tenant(tenants, tenancy);

	look_at_day(tenants);
	return accounts->total ? accounts->total : accounts->day;
}

/* --- whose a client is ------------------------------------------------------------------- */

static bool may_choose(uid_t uid)
{
	return uid == geteuid() || !uid;
}

/* Its settings; NULL: there are none. */
static const struct tenant *choose(const struct tenants *known, uid_t uid, const char *name,
				   struct rlmd_error *err)
{
	const struct tenant *own = tenants_of_user(known, uid);

	if (own && (!*name || !strcmp(own->name, name)))
		return own;
	if (*name && may_choose(uid))
		return tenants_find(known, name, err);
	if (*name)
		error_set(err, RLMD_ERROR_USAGE, "user %u is no user of tenant '%.60s'",
			  (unsigned)uid, name);
	else
		error_set(err, RLMD_ERROR_USAGE,
			  "user %u is no tenant's: 'users' in rlmd.conf says whose; the server's "
			  "own user names the tenant in initialize",
			  (unsigned)uid);
	return NULL;
}

const struct tenancy *serve_tenants_of(struct serve_tenants *tenants, uid_t uid, const char *name,
				       struct rlmd_error *err)
{
	const struct tenant *settings = choose(&tenants->session->config.tenants, uid, name, err);
	const struct tenancy *tenancy;

	if (!settings)
		return NULL;
	tenancy = tenancies_get(tenants->tenancies, text_of(settings->name));
	if (!tenancy->unable.kind)
		return tenancy;
	*err = tenancy->unable;
	return NULL;
}

/* --- all of them ------------------------------------------------------------------------- */

struct serve_tenants *serve_tenants_new(struct session *session, struct rlmd_error *err)
{
	struct serve_tenants *tenants = xcalloc(1, sizeof *tenants);
	const struct tenancies_options options = {
		.engine = session->engine,
		.tenants = &session->config.tenants,
		.kind = session->config.provider,
		.require = session->config.require,
		.provider = open_provider,
		.sandbox = open_sandbox,
		.owner = tenants,
	};
	const char *less;

	tenants->session = session;
	tenants->tenancies = tenancies_new(&options);
	tenants->midnight = timer_new(session->base, on_look, tenants);
	tenants->today = day_now();
	tenancies_expect(tenants->tenancies, session->config.tenants.count);
	if (!tenancies_begin(tenants->tenancies, &less, err)) {
		serve_tenants_free(tenants);
		return NULL;
	}
	if (less)
		tell_warning("tenants are kept apart by %s only: --require allows it", less);
	on_look(tenants);
	return tenants;
}

void serve_tenants_free(struct serve_tenants *tenants)
{
	if (!tenants)
		return;
	for (size_t i = 0; i < tenants->count; i++) {
		rlmd_account_unref(tenants->accounts[i].total);
		rlmd_account_unref(tenants->accounts[i].day);
	}
	free(tenants->accounts);
	timer_free(tenants->midnight);
	tenancies_free(tenants->tenancies);
	free(tenants);
}
