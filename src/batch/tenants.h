/*
 * batch/tenants.h - for whom jobs are done: the sections [tenant NAME] of rlmd.conf(5).
 *
 * Each tenant has its own key and models, its share beside others, and its caps. A member that is
 * not set is 0, or -1 where 0 means something else: then the settings of the command are for it,
 * too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum { TENANT_NAME_MAX = 40 }; /* bytes: letters, digits and ._- */

struct tenant_list {
	char **items; /* owned, and each of them; NULL: nothing is said */
	size_t count;
};

#define TENANT_NAME  char *
#define TENANT_LIST  struct tenant_list
#define TENANT_COUNT int64_t
#define TENANT_SIZE  int64_t
#define TENANT_MONEY int64_t
#define TENANT_LEVEL int64_t

/* Strings are owned; money is in pico-dollars; `require` is 1 to 4. */
struct tenant {
	char *name;
#define SETTING(field, type, ...) TENANT_##type field;
#include "batch/tenants.def"
#undef SETTING
};

/* Zero is none. */
struct tenants {
	struct tenant *items; /* owned, in the order in which they were first named */
	size_t count;
};

void tenants_done(struct tenants *);

/* One setting, as it stands in a file; a later one takes an earlier one's place. RLMD_ERROR_USAGE
 * says what is wrong with which. */
bool tenants_set(struct tenants *, const char *tenant, const char *setting, const char *value,
		 struct rlmd_error *);

/* The tenant of that name, lent until the next is set; NULL and RLMD_ERROR_INPUT, which says who
 * there is. */
const struct tenant *tenants_find(const struct tenants *, const char *name, struct rlmd_error *);

/* The first tenant that has this user, lent until the next is set; NULL: none has. Names of users
 * are looked up, getpwnam(3). */
const struct tenant *tenants_of_user(const struct tenants *, uid_t);

/* Whether it may use the model; `*` in what is allowed stands for anything. Where nothing is said
 * all are. */
bool tenants_may_use(const struct tenant *, const char *model);

/* The models that it may use, with commas between, new. */
char *tenants_models(const struct tenant *);
