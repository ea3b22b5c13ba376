/*
 * engine/job.h - one task or one plan: the inside of rlmd/job.h.
 *
 * A job is what all runs, model calls and operations of one task or plan share:
 * its settings, its trace, its counters, and through its engine what all jobs
 * share; they are lent it. What it works on is either a task, which the root run
 * answers (job_task.c), or a plan (job_plan.c); all else is the same: its options
 * (job_options.h), what it tells (job_hooks.h) and what comes of it (job_result.h).
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <rlmd/job.h>
#include <rlmd/plan.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "base/stop.h"
#include "base/text.h"
#include "budget/budget.h"
#include "engine/engine.h"
#include "engine/job_hooks.h"
#include "engine/permits.h"
#include "prompt/brief.h"
#include "prompt/prompt_set.h"
#include "sandbox/sandbox.h"
#include "source/context.h"
#include "trace/trace.h"

struct ask;
struct function_set;
struct rlmd_function;
struct estimators;
struct job_plan;
struct job_work;
struct rlmd_job;
struct run;
struct validation;

TAILQ_HEAD(ask_list, ask);

struct job_config {
	char *model;                      /* owned: the root's; NULL: the provider's default */
	char *subcall_model;              /* owned; NULL: as `model` */
	const struct prompt_set *prompts; /* owned: what models are told; NULL: by model */
	const char *const *preload;       /* lent: workers' modules, up to a NULL; or NULL */
	struct budget_limits limits;
	int64_t block_timeout_ms;
	int64_t max_output; /* characters */
	int max_parallel;   /* model calls at once */
	int downgrade;      /* per cent of a limit: with less left a sub-run is one call (ENG-14) */
	int64_t grace_ms;   /* for the forced answer after an interruption */
	bool without_tree;  /* the result of a task has none */
	bool strict;        /* a forced answer is a failure (RLMD_ERROR_BUDGET) */
	/* Of one reply, in tokens; 0: as usual (engine/ask.h). */
	int64_t max_output_tokens;
	char **models; /* owned, and each: that code may name; NULL: any */
	size_t model_count;
	struct llm_sampling sampling; /* of all calls that bring none; its texts are these: */
	char **stops;                 /* owned, up to a NULL */
	char *schema;                 /* owned: that the answer of a task satisfies; NULL: none */
	size_t schema_size;
};

struct rlmd_result {
	struct rlmd_error error; /* of kind RLMD_ERROR_NONE: success */
	struct rlmd_text output; /* the answer; may stand beside an error (interrupted, strict) */
	enum rlmd_stop stop;
	bool forced;
	const struct rlmd_account *refuser; /* lent by the settings: whose limit was the last that
					       refused something; NULL: one of its own */
	struct budget_usage usage;
	int64_t duration_ms;
	json_t *object; /* owned: of a task (success, output, trace, usage, warnings, ...), or what
			   `rlmd plan` prints */
	char *json;     /* owned: the same, once somebody has asked for it */
	struct rlmd_plan_metrics metrics; /* of a plan */
};

enum job_state {
	JOB_NEW,    /* begins from the loop */
	JOB_CHECKS, /* whether its schemas are some */
	JOB_WORKS,  /* tells events */
	JOB_ENDED,  /* has its result, and will tell it */
	JOB_OVER,   /* told it */
};

struct rlmd_job {
	struct rlmd_engine *engine; /* lent, and what is lent of it: */
	struct event_base *base;
	struct llm *llm;               /* owned: whom it asks */
	struct permits permits;        /* its part of what all jobs share */
	unsigned weight;               /* how large that is */
	struct rlmd_group *group;      /* a reference: whose part it is one of; NULL: nobody's */
	struct estimators *estimators; /* what the provider's models were billed as */
	struct rlmd_sandbox *sandbox;  /* lent; or NULL */
	struct validation *validation; /* owned: holds answers to schemas; NULL: there are none */
	void (*on_schemas)(struct rlmd_job *, const struct rlmd_error *); /* while JOB_CHECKS */

	struct job_config config;
	const char *model;                        /* of root turns, resolved */
	const char *subcall_model;                /* of everything below, resolved */
	const struct prompt_set *prompts;         /* lent: what the root is told */
	const struct prompt_set *subcall_prompts; /* likewise all below */
	char id[37];
	struct log log;  /* its engine's, with its id */
	int64_t started; /* on clock_ms() */

	struct trace *trace;     /* owned */
	json_t *notes;           /* owned: what was to be warned of before it began */
	struct ask_list sent;    /* model calls that are under way; lent */
	struct ask_list waiting; /* those that wait for what these give back; lent */
	bool overrun;            /* it was warned of output beyond max_tokens */
	int calls_in_flight;
	int runs_alive[RUN_DEPTH_MAX]; /* by depth, for the status line */
	int64_t call_count, call_ms;   /* finished llm_query calls and their time, for prompts */
	int64_t subrun_count, subrun_ms, subrun_cost; /* likewise of sub-runs */

	const struct job_work *work; /* static: what to do, which is in the next four */
	char *task;                  /* owned */
	size_t task_size;
	struct context context;         /* owned: references */
	struct function_set *functions; /* owned: of the host's */
	struct run *root;               /* owned; of a task, until its run has ended */
	struct job_plan *operations;    /* owned; of a plan, from its start on */
	struct rlmd_plan_file *file;    /* lent; of a plan */

	enum job_state state;
	struct event *posted;     /* owned: what is due from the loop */
	struct rlmd_error broken; /* it has to end with that; of no kind: it has not */
	bool interrupted;         /* asked for; and done */
	bool yields;
	bool cancelled;            /* asked for */
	bool telling;              /* inside a callback of its owner's */
	bool doomed;               /* freed from inside one */
	struct rlmd_result result; /* from its end on */
	struct job_hooks hooks;
	TAILQ_ENTRY(rlmd_job) entry;
};

/* Whether the job may ask that model: its own two, and what its options allow. NULL is its own. */
bool job_may_ask(const struct rlmd_job *, const char *model);

/* --- for the runs, calls and operations below, and what hosts jobs ----------------- */

/* One of two kinds of work. */
struct job_work {
	void (*start)(struct rlmd_job *);
	void (*interrupt)(struct rlmd_job *);
	void (*cancel)(struct rlmd_job *); /* ends with job_end(), now or from the loop */
	const struct budget *(*account)(const struct rlmd_job *); /* NULL: not any more */
	void (*count)(const struct rlmd_job *, int64_t *ret_all, int64_t *ret_ended); /* of its
									operations */
	void (*free)(struct rlmd_job *); /* what it owns; also where it never began */
	json_t *(*none)(void);           /* the members of its result that never began, new */
};

extern const struct job_work job_task, job_plan;

/* The work is done: takes `object`, tells it as the last event, and the end from the loop. */
void job_end(struct rlmd_job *, const struct rlmd_error *, json_t *object);

/* It ends with this error from the loop, the first one of several. */
void job_break(struct rlmd_job *, const struct rlmd_error *);

bool job_is_over(const struct rlmd_job *);
void job_destroy(struct rlmd_job *); /* at once: not from inside its callbacks */

json_t *job_sandbox(const struct rlmd_job *); /* its report, new; null where there is none */

const struct prompt_set *job_prompts(const struct rlmd_job *, int depth); /* of a run there; lent */
struct brief_facts job_facts(const struct rlmd_job *);                    /* lent as the job is */
int job_deepest(const struct rlmd_job *); /* depth of a run that is alive; 0 where there is none */
