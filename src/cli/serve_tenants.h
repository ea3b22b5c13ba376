/*
 * cli/serve_tenants.h - the tenants of rlmd.conf(5) whose clients a listening server has.
 *
 * Each has its provider, sandbox and shares as in a batch (batch/tenancies.h), and accounts in this
 * process: what all its jobs may spend while the server runs, and on one day (UTC).
 */
#pragma once

#include <rlmd/budget.h>
#include <rlmd/rlmd.h>
#include <sys/types.h>

#include "batch/tenancies.h"

struct serve_tenants;
struct session;

/* NULL: RLMD_ERROR_SANDBOX, there are fewer walls here than tenants need between them. The settings
 * have some tenants. */
struct serve_tenants *serve_tenants_new(struct session *, struct rlmd_error *);
void serve_tenants_free(struct serve_tenants *); /* after the jobs; NULL is fine */

/* That the user is a client of, or that of this name, which our own user may choose; lent. NULL:
 * RLMD_ERROR_USAGE, or why none of the tenant's jobs can be begun. */
const struct tenancy *serve_tenants_of(struct serve_tenants *, uid_t, const char *name,
				       struct rlmd_error *);

/* The account that its jobs pay out of, lent; NULL: it has no limit. */
struct rlmd_account *serve_tenants_account(struct serve_tenants *, const struct tenancy *);
