/*
 * engine/scope.h - everything that the runs, calls and operations of one job share.
 *
 * A job embeds it (engine/job.h), fills it from its options, and frees what it owns.
 * Runs, calls and operations know their scope and not their job.
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "async/scheduler.h"
#include "base/log.h"
#include "budget/budget.h"
#include "engine/activity.h"
#include "engine/estimators.h"
#include "engine/hooks.h"
#include "llm/llm.h"
#include "prompt/brief.h"
#include "prompt/prompt_set.h"
#include "sandbox/sandbox.h"
#include "trace/trace.h"

struct function_set;
struct validation;

enum { RUN_DEPTH_MAX = 64 }; /* no limit on depth may be set beyond it */

struct scope_config {
	char *model;                      /* owned: the root's; NULL: the provider's default */
	char *subcall_model;              /* owned; NULL: as `model` */
	const struct prompt_set *prompts; /* owned: what models are told; NULL: by model */
	const char *const *preload;       /* lent: workers' modules, up to a NULL; or NULL */
	char *python_version;             /* owned: as "3.11"; or NULL */
	struct budget_limits limits;
	int64_t block_timeout_ms;
	int64_t max_output;     /* characters */
	int max_parallel;       /* model calls at once */
	bool ends_with_account; /* no answer is forced where an account above has no more */
	int downgrade; /* per cent of a limit: with less left a sub-run is one call (ENG-14) */
	int64_t max_output_tokens; /* of one reply; 0: as usual (SCOPE_OUTPUT_TURN) */
	char **models;             /* owned, and each: that code may name; NULL: any */
	size_t model_count;
	struct llm_sampling sampling; /* of all calls that bring none; its texts are `stops` */
	char **stops;                 /* owned, up to a NULL */
};

struct scope {
	struct event_base *base;              /* lent by the engine */
	struct llm *llm;                      /* owned by the job: asks its models */
	struct flow *calls, *workers;         /* owned: the job's, of what all jobs share */
	struct scheduler *alive;              /* owned */
	struct flow *alive_at[RUN_DEPTH_MAX]; /* owned; NULL: nobody asked yet */
	size_t alive_max;                     /* at each depth */
	struct estimators *estimators;        /* lent: what the provider's models were billed as */
	struct rlmd_sandbox *sandbox;         /* lent; or NULL */
	struct validation *validation;  /* owned by the job: checks answers against schemas; or
					   NULL: there are no schemas */
	struct function_set *functions; /* owned by the job: the host's */

	struct scope_config config;
	struct rlmd_text setup, first_code; /* lent by the job: before the root's first turn */
	const char *model;                  /* of root turns, resolved */
	const char *subcall_model;          /* of everything below, resolved */
	const struct prompt_set *prompts;   /* lent: of the root */
	const struct prompt_set *subcall_prompts; /* lent: of everything below */

	char id[37];
	struct log log;      /* the engine's, with the id */
	struct trace *trace; /* owned by the job */
	struct hooks hooks;

	bool overrun; /* a warning of output beyond max_tokens was given */
	struct activity_list activities;
	int64_t call_count, call_ms;                  /* finished llm_query calls, for prompts */
	int64_t subrun_count, subrun_ms, subrun_cost; /* finished sub-runs, for prompts */
};

/*
 * Permits (docs/architecture.md, "Permits"): for model calls in flight, for runs whose worker may
 * compute, and for runs that are alive beside others of the job at the same depth.
 *
 * `calls` and `workers` are the flows of the group, or of the engine, and lent until
 * scope_unshare(); `all_calls` and `all_workers` say how many permits there are, whose ever. The
 * configuration says how many calls the job may have at once. All permits must be gone before
 * scope_unshare(), which is idempotent.
 */
void scope_share(struct scope *, struct flow *calls, size_t all_calls, struct flow *workers,
		 size_t all_workers, unsigned weight);
void scope_unshare(struct scope *);

/* To compute, for a run at `depth` that begins, or that goes on. */
struct permit *scope_ask_worker(struct scope *, int depth, bool goes_on, permit_fn *, void *owner);

/* To be alive, for a run that is not the root of a task. */
struct permit *scope_ask_alive(struct scope *, int depth, permit_fn *, void *owner);

/* Output to ask for, in tokens. */
enum {
	SCOPE_OUTPUT_TURN = 8192, /* where the account affords it */
	SCOPE_OUTPUT_QUERY = 8192,
	SCOPE_OUTPUT_FORCED = 4096,
	SCOPE_OUTPUT_FLOOR = 256, /* less is refused, but of a model whose replies are shorter */
};

/* At most this part of a model's window is asked for as a reply. */
enum { SCOPE_WINDOW_PART = 4 };

/* Whether calls may name that model: one of the job's own two, or one that its options allow.
 * NULL is the job's own. */
bool scope_may_ask(const struct scope *, const char *model);

/*
 * The most output to ask for, in tokens: `usual` where the options set no limit. A limit holds for
 * each reply, and may raise `usual` up to a quarter of the model's window.
 */
int64_t scope_output(const struct scope *, const char *model, int64_t usual);

/* Applies the options' limit on a reply, and their sampling where the request has none. */
void scope_use(const struct scope *, struct llm_request *);

/* Prompts for a model: those of the options, or the set that suits it. Lent. */
const struct prompt_set *scope_find_prompts(const struct scope *, const char *model);

const struct prompt_set *scope_prompts(const struct scope *, int depth); /* of a run there; lent */
struct brief_facts scope_facts(const struct scope *);                    /* lent as the scope is */
/* Whether the limit belongs to an account above the job, which may have more another time. */
bool scope_ends_with_account(const struct scope *, const struct budget *, enum rlmd_stop);

json_t *scope_sandbox(const struct scope *); /* the sandbox's report, new; null: no sandbox */

/* For --dry-run, as members of `object`: the limit on a reply of `model`, the sampling, and the
 * name of the prompts. */
void scope_show(const struct scope *, const char *model, int64_t usual, json_t *object);
