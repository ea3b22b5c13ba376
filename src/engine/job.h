/*
 * engine/job.h - one task or one plan: the inside of rlmd/job.h.
 *
 * A job is what all runs, model calls and operations of one task or plan share:
 * its settings, its trace, its counters, and through its engine what all jobs
 * share; they are lent it. Its work is a task, which the root run answers (job_task.c), a plan
 * (job_plan.c), or a session whose calls it serves (job_session.c); all else is the same: its
 * options (job_options.c) and what its host is told (hooks.h).
 */
#pragma once

#include <jansson.h>
#include <rlmd/job.h>
#include <rlmd/plan.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "async/metrics.h"
#include "base/error.h"
#include "base/text.h"
#include "budget/budget.h"
#include "engine/engine.h"
#include "engine/scope.h"
#include "prompt/brief.h"
#include "prompt/prompt_set.h"
#include "sandbox/sandbox.h"
#include "source/context.h"
#include "trace/trace.h"

struct plan_under_way;
struct job_kind;
struct rlmd_job;
struct run;
struct session_under_way;
struct worker;
struct worker_call;

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

/* The members of a job that is a task. */
struct job_task {
	char *text; /* owned */
	size_t size;
	char *schema; /* owned: of the answer; or NULL */
	size_t schema_size;
	char *setup, *first_code; /* owned; or NULL */
	struct context context;   /* owned: references */
	struct run *root;         /* owned; until its run has ended */
};

/* The members of a job that is a plan. */
struct job_plan {
	struct rlmd_plan_file *file;      /* lent; NULL: the job is a task */
	struct plan_under_way *under_way; /* owned; from its start on */
};

/* The members of a job that serves a session. */
struct job_session {
	struct session_under_way *under_way; /* owned; from its start on */
	void (*freed)(void *owner);          /* with the job */
	void *owner;                         /* lent: the session */
};

struct rlmd_job {
	struct engine_job hosted; /* first: its engine, and its entry there */
	struct scope scope;       /* what its runs, calls and operations share */
	struct rlmd_group *group; /* a reference: the job's group; or NULL */
	unsigned weight;          /* of its share of what all jobs share */
	int64_t grace_ms;         /* for the forced answer after an interruption */
	bool without_tree;        /* the result of a task has none */
	bool strict;              /* a forced answer is a failure (RLMD_ERROR_BUDGET) */
	json_t *notes;            /* owned: warnings from before it began */
	int64_t started;          /* on clock_ms() */

	const struct job_kind *kind; /* static */
	struct job_task task;
	struct job_plan plan;
	struct job_session session;

	enum job_state state;
	void (*on_schemas)(struct rlmd_job *, const struct rlmd_error *); /* while JOB_CHECKS */
	struct timer *posted;     /* owned: what is due from the loop */
	struct rlmd_error broken; /* the job must end with this error; of no kind: it need not */
	bool interrupted;         /* asked for; and done */
	bool yields;
	bool cancelled;            /* asked for */
	bool doomed;               /* freed from inside a callback of its owner's */
	struct rlmd_result result; /* from its end on */
};

/* One of three kinds of work. */
struct job_kind {
	void (*start)(struct rlmd_job *);
	void (*interrupt)(struct rlmd_job *);
	void (*cancel)(struct rlmd_job *); /* ends with job_end(), now or from the loop */
	const struct budget *(*account)(const struct rlmd_job *); /* NULL: not any more */
	void (*count)(const struct rlmd_job *, int64_t *ret_all, int64_t *ret_ended); /* of its
									operations */
	void (*free)(struct rlmd_job *); /* what it owns; also where it never began */
	json_t *(*none)(void);           /* the members of its result that never began, new */
};

extern const struct job_kind job_task_kind, job_plan_kind, job_session_kind;

/* Lent; NULL: the job is a task. */
struct rlmd_plan *job_plan(const struct rlmd_job *);

/*
 * A job that serves the calls of a session's code. Options as rlmd_job_start() has them, without
 * work; a copy is made. `freed` is called where the job is freed, at once or by the loop: the
 * session is to go then.
 */
struct rlmd_job *job_session_start(struct rlmd_engine *, const struct rlmd_job_options *,
				   void (*freed)(void *owner), void *owner, struct rlmd_error *);

/* The worker, which is lent until job_session_worker_lost() or the job's end, is answered. */
void job_session_call(struct rlmd_job *, struct worker *, const struct worker_call *);
void job_session_worker_lost(struct rlmd_job *); /* cancels its calls; nobody is answered */

/* The work is done: takes `object`, tells it as the last event, and the end from the loop. */
void job_end(struct rlmd_job *, const struct rlmd_error *, json_t *object);

/* It ends with this error from the loop, the first one of several. */
void job_break(struct rlmd_job *, const struct rlmd_error *);

/*
 * Warnings (those that are given, then what else there was to be warned of), sandbox, models,
 * provider and prices, as members of `object`; what was used, for the getters.
 */
void job_result_add(struct rlmd_job *, const struct budget *account, const json_t *warnings,
		    json_t *object);

/* --- its options (job_options.c): checked, with defaults, and copied --- */

enum job_purpose {
	JOB_TO_RUN,
	JOB_TO_SERVE, /* a session's calls */
	JOB_TO_CHECK, /* it would be refused, or not */
	JOB_TO_SHOW,  /* a dry run: nobody is asked */
};

/*
 * Whom the job asks, what it works on, its settings, models, prompts and hooks; and what there is
 * to warn of before it begins. False: the errors of rlmd_job_start(). job_options_drop() has to
 * follow in either case.
 */
bool job_options_take(struct rlmd_job *, const struct rlmd_job_options *, enum job_purpose,
		      struct rlmd_error *);
void job_options_drop(struct rlmd_job *);

/* The sandbox that its code runs in, lent, and what prompts say of it; NULL: there is none. */
void job_options_take_sandbox(struct rlmd_job *, struct rlmd_sandbox *);

/* Opens the check of answers, where there are schemas. RLMD_ERROR_USAGE where jsonschema is
 * missing, with the way to install it; else as rlmd_engine_sandbox(). */
bool job_options_open_schemas(struct rlmd_job *, struct rlmd_error *);

/* `err` is NULL where each is a schema, else RLMD_ERROR_USAGE. */
typedef void job_schemas_fn(struct rlmd_job *, const struct rlmd_error *err);

/* False: there are none, and nothing is told. Else that, once, and never before this returns. */
bool job_options_check_schemas(struct rlmd_job *, job_schemas_fn *);
