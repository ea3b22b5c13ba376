/*
 * batch/tenancies.h - what each tenant has of its own while its jobs are carried out here.
 *
 * Of a tenant that rlmd.conf knows: a provider with its key, where it has one; a sandbox with uids
 * and a cgroup that no other has, where there are several; a group of the engine with its weight
 * and caps. All others share what the command has, but each has a group. Jobs of no tenant are
 * those of a tenant without a name.
 */
#pragma once

#include <rlmd/group.h>
#include <rlmd/provider.h>
#include <rlmd/rlmd.h>
#include <rlmd/sandbox.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "batch/tenants.h"

struct job_line;
struct rlmd_job_options;
struct tenancies;

struct tenancy {
	struct tenancies *tenancies;   /* lent */
	char *name;                    /* owned; "": nobody's */
	const struct tenant *settings; /* lent; NULL: rlmd.conf says nothing of it */
	char *provider;                /* owned: as the engine knows its own; NULL: the command's */
	struct rlmd_group *group;      /* owned */
	struct rlmd_sandbox *sandbox;  /* lent */
	bool stranger;                 /* rlmd.conf has tenants, and this is none of them */
	struct rlmd_error unable;      /* why none of its jobs can be begun here; of no kind: they
					  can */
};

/* A sandbox as a tenant needs it; what is not said is as the command's settings are. */
struct tenancy_needs {
	int64_t worker_memory; /* bytes; 0: not said */
	uint32_t uid_range;    /* of its uids: 0 where the command's are, 1 behind these, ... */
	unsigned parts;        /* its memory is one of so many parts of what there is */
	const char *require;   /* lent; NULL: any level */
};

struct tenancies_options {
	struct rlmd_engine *engine;    /* lent */
	const struct tenants *tenants; /* lent: of rlmd.conf */
	const char *kind;              /* lent: the command's own provider */
	const char *require;           /* lent: --require; NULL: it is not said */
	bool allow_outside;            /* contexts may be anywhere */
	const char *root; /* lent: where contexts are of jobs whose tenant has no `root`, or is
			     none that rlmd.conf knows; NULL: not said */
	bool needs_root;  /* nobody knows where the jobs file is: a tenant's `root` says
			     where its contexts are */
	/* A provider of that kind with that key: a reference for the caller. */
	struct rlmd_provider *(*provider)(void *owner, const char *kind, const char *key_file,
					  struct rlmd_error *);
	struct rlmd_sandbox *(*sandbox)(void *owner, const struct tenancy_needs *,
					struct rlmd_error *); /* lent by the engine */
	void *owner;
};

struct tenancies *tenancies_new(const struct tenancies_options *);
void tenancies_free(struct tenancies *); /* after all jobs; NULL is fine */

/* So many tenants are about to have work here, nobody's among them. */
void tenancies_expect(struct tenancies *, size_t count);

/*
 * Several need what keeps them apart, level L3, but where --require says that less will do: then
 * `ret_level` is the level that there is, static, if that is less, else NULL. False:
 * RLMD_ERROR_SANDBOX, it is less and nobody said so.
 */
bool tenancies_begin(struct tenancies *, const char **ret_level, struct rlmd_error *);

/* The tenant of that name, with what it needs, opened when it is asked for first; lent. */
struct tenancy *tenancies_get(struct tenancies *, struct rlmd_text name);

int64_t tenancies_weight(const struct tenancy *);

/* Its part of a job's options: whose it is, whom it asks, for which model, where its code runs,
 * whose turns it has; `model` is what the line says, or NULL. Lent by the tenancy and by `model`.
 * False: RLMD_ERROR_INPUT, it may not use that model. */
bool tenancies_give(const struct tenancy *, const char *model, struct rlmd_job_options *,
		    struct rlmd_error *);

/*
 * Where the context of its job is, new, as job_line_path() has it; NULL and no error: it has none
 * of a file or directory. Of a tenant that rlmd.conf knows it lies in its `root`, else in that of
 * the options, else in that of the jobs file, whatever links lead there; of another one in that of
 * the options, where there is one. RLMD_ERROR_INPUT where it does not.
 */
char *tenancies_path(const struct tenancy *, const struct job_line *, const char *directory,
		     struct rlmd_error *);
