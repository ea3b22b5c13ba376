/*
 * rlmd/job.h - one task or one plan, answered.
 *
 * rlmd_job_start() begins a job on an engine. Its hooks report progress; the hook
 * `end` is called once and last. Hooks are called from the engine's loop only, so
 * never before a function here has returned. A task is answered by a run: a model
 * that writes Python, whose code may call models and further runs. A plan is a
 * list of operations that are model calls and runs (rlmd/plan.h).
 *
 *     struct rlmd_job_options options = {.size = sizeof options};
 *     options.task = rlmd_text_of("Which host failed first?");
 *     options.context = context;
 *     job = rlmd_job_start(engine, &options, &err);
 *     if (!job || !rlmd_engine_wait(engine, job, &err)) ...
 *     answer = rlmd_result_output(rlmd_job_result(job));
 */
#pragma once

#include <rlmd/budget.h>
#include <rlmd/engine.h>
#include <rlmd/provider.h>
#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rlmd_check;
struct rlmd_context;
struct rlmd_function;
struct rlmd_group;
struct rlmd_job;
struct rlmd_journal_entry;
struct rlmd_plan_file;
struct rlmd_result;
struct rlmd_sandbox_options;

/* Limits on a job with all its runs and calls. */
struct rlmd_limits {
	size_t size;
	int64_t cost;      /* pico-dollars; 0: 5 dollars; RLMD_NOTHING: free models only */
	int64_t tokens;    /* input and output; 0: 500,000 */
	int64_t time_ms;   /* from the start: thirty days at most, or RLMD_UNLIMITED; 0: 300,000 */
	int64_t max_depth; /* of sub-runs, to 16; 0: 2; RLMD_NOTHING: no sub-runs */
	int64_t max_iterations; /* turns of the root; a sub-run has half as many; 0: 30 */
	int64_t calls;          /* of models; 0: 10,000 */
	int64_t subruns;        /* 0: 1,000 */
};

#define RLMD_LIMITS_INIT RLMD_INIT(struct rlmd_limits)

/* Use by a job with all its runs and calls. */
struct rlmd_usage {
	size_t size;  /* set it before the call that fills the rest */
	int64_t cost; /* pico-dollars */
	int64_t tokens, input_tokens, output_tokens, cached_tokens;
	int64_t duration_ms;
	int64_t iterations, subcalls, llm_calls, max_depth_reached;
	bool estimated;       /* some of it is an estimate: no provider reported it */
	bool cost_complete;   /* false: the price of some call is unknown */
	int64_t cached_calls; /* of llm_calls: answered from the cache, at no cost */
	/* Of cost, tokens and llm_calls: the part that earlier attempts at the job paid, found in
	 * its journal. This attempt paid the rest. */
	int64_t journaled_cost, journaled_tokens, journaled_calls;
};

#define RLMD_USAGE_INIT RLMD_INIT(struct rlmd_usage)

/*
 * The structs that hooks are given, lent until the hook returns. `run` is the id
 * of the run, as in the trace; `depth` is the run's depth, 0 for the root. Texts
 * are whole except where the trace cuts them (docs/trace.md). A cost of -1: the
 * price is unknown.
 */
struct rlmd_iteration { /* the model answered a turn */
	size_t size;
	const char *run;
	int64_t depth, number; /* from 1 */
	const char *model;
	struct rlmd_text response;
	int64_t input_tokens, output_tokens, cost, duration_ms;
};

struct rlmd_code { /* a block begins to run */
	size_t size;
	const char *run;
	int64_t depth, iteration; /* the turn, from 1; 0: the look at the inputs before it */
	struct rlmd_text code;
};

struct rlmd_output { /* a block has run */
	size_t size;
	const char *run;
	int64_t depth, iteration;
	struct rlmd_text code, standard_output, standard_error;
	struct rlmd_text error; /* the traceback; empty: it did not fail */
	int64_t duration_ms;
};

enum rlmd_subcall_kind {
	RLMD_SUBCALL_LLM, /* a call of a model */
	RLMD_SUBCALL_RUN, /* a run of its own */
};

struct rlmd_subcall { /* a call or a run that code or a plan asked for has ended */
	size_t size;
	enum rlmd_subcall_kind kind;
	const char *run; /* of a model call: the run that asked; of a run: its own id */
	int64_t depth;   /* of that run */
	const char *model;
	struct rlmd_text prompt, answer; /* of a run, `prompt` is its task */
	int64_t tokens, cost, duration_ms;
	const char *error; /* the name of its kind; NULL: it succeeded */
};

struct rlmd_activity { /* a run, or a call of a model: about to begin, in line, or under way */
	size_t size;
	enum rlmd_subcall_kind kind;
	const char *run;    /* of a call: the run that asks (a plan: the job's id); of a run: its
			       own id, NULL before it has begun */
	const char *parent; /* of a run: the run that asked for it; NULL: none, and of a call */
	int64_t depth;      /* of `run`, or of the run that is to begin */
	int64_t turn;       /* of `run`, from 1; 0: before the first, and of a plan */
	const char *model;
	enum rlmd_model_kind call; /* of a call */
	struct rlmd_text prompt;   /* of a call its last message, of a run its task */
	int64_t elapsed_ms;        /* since it was asked for */
	bool waits;                /* a call that was not sent yet */
};

/*
 * Each hook may be NULL. A hook may call rlmd_job_interrupt(), rlmd_job_cancel(),
 * rlmd_job_free() and rlmd_job_start(), for any job, but not rlmd_engine_wait()
 * and rlmd_engine_free().
 */
struct rlmd_hooks {
	size_t size;
	void (*iteration)(void *owner, struct rlmd_job *, const struct rlmd_iteration *);
	void (*code)(void *owner, struct rlmd_job *, const struct rlmd_code *);
	void (*output)(void *owner, struct rlmd_job *, const struct rlmd_output *);
	void (*subcall)(void *owner, struct rlmd_job *, const struct rlmd_subcall *);

	/* Four fifths of a limit are used; once for each limit: "Cost at 83% of budget". */
	void (*budget_warning)(void *owner, struct rlmd_job *, const char *text);

	/* More words of the root's model, as they arrive. An empty text: the call is
	 * tried again, and its words so far are void. */
	void (*delta)(void *owner, struct rlmd_job *, struct rlmd_text words);

	/* An event of the trace (docs/trace.md) as JSON without a line feed. The last
	 * one is "result". */
	void (*event)(void *owner, struct rlmd_job *, struct rlmd_text json);

	/* Names of the events that `event` is called for, ended by a NULL; NULL: all.
	 * Other events are not made but counted ("seq"). Lent to rlmd_job_start(). */
	const char *const *events;

	/* The job has ended; called once, last. The result is lent until the job is freed. */
	void (*end)(void *owner, struct rlmd_job *, const struct rlmd_result *);
	void *owner; /* lent until the job is freed */

	/*
	 * Checks an answer of a task before it is taken. The host must call
	 * rlmd_check_accept() or rlmd_check_reject() once, now or later, even if the
	 * job has ended meanwhile. NULL: every answer is taken.
	 */
	void (*check)(void *owner, struct rlmd_job *, struct rlmd_text answer, struct rlmd_check *);

	/*
	 * A model is about to be asked, for a turn too, or a sub-run to begin. True: it goes on.
	 * False refuses it, and may say why in `why` (of no kind: RLMD_ERROR_REFUSED): code that
	 * asked gets this error, and a run that may not have its turn ends with it. A call that is
	 * refused counts as one of the job's calls.
	 */
	bool (*before)(void *owner, struct rlmd_job *, const struct rlmd_activity *,
		       struct rlmd_error *why);
};

#define RLMD_HOOKS_INIT RLMD_INIT(struct rlmd_hooks)

/* Takes the answer. Frees the check. */
RLMD_API void rlmd_check_accept(struct rlmd_check *);

/*
 * Rejects the answer and frees the check. The model is told `wrong` and tries again
 * with the turns that it has left, or once more if its answer was forced. If no
 * answer is accepted, the job fails with RLMD_ERROR_SCHEMA. `wrong` says in a few
 * lines what is wrong, where, and how it should be.
 */
RLMD_API void rlmd_check_reject(struct rlmd_check *, const char *wrong);

/*
 * A journal of one job, kept by its host. Another attempt at the same job (the same
 * options, in this process or another one, however the first attempt ended) finds
 * there the answers of models, failed calls and their bills, results of the host's
 * functions, and texts that told code a time or a rest of the budget. So it pays
 * only for calls that no earlier attempt has paid.
 *
 * An entry has a key, a text of at most 80 of the characters 0-9, a-f and -, and a
 * number from 0. Its bytes are UTF-8, mostly some kilobytes, opaque to the host;
 * later versions of the library read them. A job believes its journal: protect it
 * from others.
 */
struct rlmd_journal {
	size_t size;

	/* Finds an entry; its bytes are lent until the loop turns. It must not block: the host has
	 * read the journal before. Called from the loop. */
	bool (*look)(void *owner, const char *key, int64_t number, struct rlmd_text *ret);

	/* Keeps an entry durably. The host must call rlmd_journal_kept() or rlmd_journal_failed()
	 * once, now or later, even if the job has ended meanwhile: the job uses the entry only
	 * then. Several may be under way, in any order. Key and bytes are lent until it returns.
	 * It may cancel the job but not free it. Called from the loop. */
	void (*keep)(void *owner, const char *key, int64_t number, struct rlmd_text bytes,
		     struct rlmd_journal_entry *);
	void *owner; /* lent until the job is freed */
};

#define RLMD_JOURNAL_INIT RLMD_INIT(struct rlmd_journal)

/* The entry is kept. Frees the handle. */
RLMD_API void rlmd_journal_kept(struct rlmd_journal_entry *);

/* The bill of the model call in an entry, zero for other entries: a host can count its spending by
 * journals. Call it before rlmd_journal_kept() or rlmd_journal_failed(). */
RLMD_API struct rlmd_amount rlmd_journal_entry_bill(const struct rlmd_journal_entry *);

/* The entry is not kept: the job ends with this error; NULL or one without a kind:
 * RLMD_ERROR_INTERNAL. Frees the handle. */
RLMD_API void rlmd_journal_failed(struct rlmd_journal_entry *, const struct rlmd_error *);

/* Of a task or a plan. Members are copied or referenced unless they are lent. */
struct rlmd_job_options {
	size_t size;
	struct rlmd_text task;                 /* UTF-8, or nearly so */
	const struct rlmd_context *context;    /* of a task; NULL: none */
	struct rlmd_plan_file *plan;           /* lent until the job is freed; the job sets the
						  owners of its operations; or NULL */
	const struct rlmd_function *functions; /* the host's, for code to call (function.h) */
	size_t function_count;
	const char *provider;      /* a registered name; NULL: the first */
	const char *model;         /* "MODEL", or "PROVIDER/MODEL"; NULL: the provider's default */
	const char *subcall_model; /* of all below the root; NULL: as `model` */
	struct rlmd_sandbox *sandbox; /* the engine's; NULL: its default one, if code is to run */
	const struct rlmd_limits *limits; /* NULL: all zero */
	struct rlmd_account *account;     /* is charged too, beside the limits; or NULL */
	unsigned weight; /* of its share of workers and calls beside other jobs, to 1000; 0: 1 */
	int64_t block_timeout_ms; /* of one block of code; 0: 30,000 */
	int64_t max_output;       /* characters of a block's output shown to the model; 0: 50,000 */
	int64_t max_output_tokens; /* of one reply; 0: as usual for the model */
	int64_t grace_ms;          /* for the answer after an interruption; 0: 15,000; or
				      RLMD_NOTHING */
	int64_t max_parallel;      /* model calls of this job at once; 0: 4 */
	int64_t downgrade;         /* per cent of a limit: with less left, a sub-run becomes one
				      call; 0: 20; or RLMD_NOTHING */
	bool strict;               /* a forced answer is a failure, RLMD_ERROR_BUDGET */
	bool without_tree;         /* leaves "trace" out of a task's result, which saves time and
				      memory with each call */
	bool with_temperature;
	double temperature; /* from 0 to 2, with with_temperature */
	const char *const
		*stops;         /* a reply ends before the first of these, up to a NULL; or NULL */
	const char *prompt;     /* a prompt profile, or a directory with one; NULL: by model */
	const char *record_dir; /* each exchange with a provider is kept there; NULL: off */
	const char *replay_dir; /* answers come from there, no provider is asked; NULL: off */
	const char *const *warnings;    /* given to the user before, ended by a NULL: for the
					   result; or NULL */
	const struct rlmd_hooks *hooks; /* NULL: none */
	const char *cache_dir; /* a directory of answers: read, and added to; NULL: off. Off with
				  replay_dir */
	int64_t cache_age_ms;  /* older answers are asked for again; 0: seven days */
	int64_t cache_size;    /* bytes that the cache may hold; 0: a gigabyte */
	const char *tenant;    /* the job sees only this tenant's answers in a cache; or NULL */

	/*
	 * Of a task: a JSON Schema (2020-12) that the answer must satisfy, as JSON text of
	 * at most 64 KiB; empty: none. The model is told what is wrong with an answer and
	 * tries again, as after rlmd_check_reject(). The output is the JSON alone.
	 * Operations of a plan have schemas of their own.
	 */
	struct rlmd_text schema;

	const struct rlmd_journal *journal; /* NULL: none. Off with replay_dir */
	/* Models that code may name for calls and sub-runs, beside the two above; `*` matches any
	 * text. NULL: any model of its provider. */
	const char *const *models;
	size_t model_count;

	struct rlmd_group *group; /* of the same engine: takes turns within it (rlmd/group.h); NULL:
				     by itself */

	/* Ends the job with RLMD_ERROR_BUDGET, and asks for no forced answer, when `account` or one
	 * above it has too little left: the job can be started again when there is more. The job's
	 * own limits force an answer as ever. */
	bool ends_with_account;

	/*
	 * Of a task: Python that runs before the first turn, with the look at the inputs. The model
	 * sees `first_code` and what it prints as a step of its own; `setup` runs before it, in the
	 * same block, and is not shown. Together at most 1 MiB; empty: the look alone. The prompt
	 * "first_code" says what the step is for.
	 */
	struct rlmd_text setup, first_code;

	/* Of rlmd_job_dry_run(): the sandbox that the job would have, for the prompt names its
	 * Python and modules; none is started. NULL: it names none. */
	const struct rlmd_sandbox_options *shown_sandbox;
};

#define RLMD_JOB_OPTIONS_INIT RLMD_INIT(struct rlmd_job_options)

/*
 * Starts a job. No hook is called before it returns; a later failure is the job's
 * result. The engine owns the job until rlmd_job_free() or the engine's end. NULL:
 * RLMD_ERROR_USAGE for bad options, an unknown provider or prompt, a record_dir
 * that cannot be written, a schema without Python's jsonschema; RLMD_ERROR_AUTH
 * for a provider without its key; RLMD_ERROR_INPUT for unreadable recordings;
 * RLMD_ERROR_BUDGET if only free models are allowed and the model is not free;
 * RLMD_ERROR_SANDBOX if the default sandbox, or the one that checks answers,
 * cannot be started. A text that is no valid schema is the job's result: it ends
 * with RLMD_ERROR_USAGE before any model is asked.
 */
RLMD_API struct rlmd_job *rlmd_job_start(struct rlmd_engine *, const struct rlmd_job_options *,
					 struct rlmd_error *);

/* Whether rlmd_job_start() would take these options. Starts nothing, and so does not try the
 * sandbox. */
RLMD_API bool rlmd_job_check(struct rlmd_engine *, const struct rlmd_job_options *,
			     struct rlmd_error *);

/*
 * As rlmd_job_check(). For a task that would be taken it also opens a connection to the provider,
 * with TLS, while the loop turns; the job's first request uses it, or gets its failure. No
 * connection is opened for a job with a cache, a journal or a recording, which may not need one.
 */
RLMD_API bool rlmd_job_prepare(struct rlmd_engine *, const struct rlmd_job_options *,
			       struct rlmd_error *);

/*
 * Checks the schemas of a task or of a plan's operations: a sealed worker reads them, with the
 * interpreter of the options' sandbox if there is one, while the loop turns. No provider is asked,
 * and no key is needed. False: RLMD_ERROR_USAGE for the first text that is no valid schema, and if
 * Python's jsonschema is missing; RLMD_ERROR_CANCELLED if the loop was left; else the errors of
 * rlmd_job_start().
 */
RLMD_API bool rlmd_job_check_schemas(struct rlmd_engine *, const struct rlmd_job_options *,
				     struct rlmd_error *);

/*
 * The job's first request and the most that it could cost, as one line of JSON: the
 * output of `rlmd exec --dry-run --json`. No model is asked, and no key is needed.
 * The caller frees it. NULL: the errors of rlmd_job_start().
 */
RLMD_API char *rlmd_job_dry_run(struct rlmd_engine *, const struct rlmd_job_options *,
				struct rlmd_error *);

/*
 * Ends a job early with an answer. A task makes no new calls, cancels those in
 * flight, and asks for an answer at once, which has grace_ms to arrive. A plan ends
 * with the results that it has. Takes effect from the loop. NULL and a job that
 * has ended are fine.
 */
RLMD_API void rlmd_job_interrupt(struct rlmd_job *);

/* Ends a job as soon as the loop turns, with RLMD_ERROR_CANCELLED and no answer.
 * Its use is counted, calls in flight by their estimate. NULL and a job that has
 * ended are fine. */
RLMD_API void rlmd_job_cancel(struct rlmd_job *);

/* Frees a job; cancels it if it has not ended. No callback follows. NULL is fine. */
RLMD_API void rlmd_job_free(struct rlmd_job *);

/* A job's progress; counts include all its runs and calls. */
struct rlmd_job_status {
	size_t size;   /* set it before the call that fills the rest */
	int64_t turn;  /* of the root, from 1; 0: before the first, and for a plan */
	int64_t depth; /* of the deepest run that is alive */
	int64_t calls_in_flight;
	int64_t tokens, cost, elapsed_ms;
	int64_t max_cost;                     /* RLMD_UNLIMITED: none */
	int64_t operations, operations_ended; /* of a plan */
	bool interrupted;
};

#define RLMD_JOB_STATUS_INIT RLMD_INIT(struct rlmd_job_status)

/* False, and nothing is filled, if ret->size is unknown. */
RLMD_API bool rlmd_job_get_status(const struct rlmd_job *, struct rlmd_job_status *);

/* Calls `tell` for each run and each call of a model that is alive, the oldest first. `tell` must
 * not free the job. */
typedef void rlmd_activity_fn(void *owner, const struct rlmd_activity *);
RLMD_API void rlmd_job_each_activity(const struct rlmd_job *, rlmd_activity_fn *tell, void *owner);

/* Fills the rest of the job's limits: RLMD_NOTHING where nothing is left, or RLMD_UNLIMITED;
 * `max_depth` and `max_iterations` of the root. False, and nothing is filled: the job has ended, or
 * ret->size is unknown. */
RLMD_API bool rlmd_job_get_left(const struct rlmd_job *, struct rlmd_limits *ret);

/* A warning from before the job began, about its inputs, provider or prices, by
 * number from 0. Lent; NULL: there are no more. The result has them, too. */
RLMD_API const char *rlmd_job_warning(const struct rlmd_job *, size_t index);

/* The result; NULL before the job's end. It and all that the rlmd_result_*()
 * functions return is lent until the job is freed. */
RLMD_API const struct rlmd_result *rlmd_job_result(const struct rlmd_job *);

RLMD_API bool rlmd_result_success(const struct rlmd_result *);
RLMD_API const struct rlmd_error *rlmd_result_error(const struct rlmd_result *); /* NULL: none */

/* The answer; empty for a plan. An interrupted or `strict` job may have an answer
 * and an error. */
RLMD_API struct rlmd_text rlmd_result_output(const struct rlmd_result *);

/* Why a task ended; RLMD_STOP_NONE for a plan. */
RLMD_API enum rlmd_stop rlmd_result_stop(const struct rlmd_result *);

/* Whether the answer was asked for before the model was ready to give it. */
RLMD_API bool rlmd_result_forced(const struct rlmd_result *);

/* If the job failed with RLMD_ERROR_BUDGET or its answer was forced: the name of the account above
 * the job whose limit on cost or tokens was reached. The job may do better once that account has
 * more. NULL: the limit was the job's own, or something else. */
RLMD_API const char *rlmd_result_limited_by(const struct rlmd_result *);

/* False, and nothing is filled, if ret->size is unknown. */
RLMD_API bool rlmd_result_usage(const struct rlmd_result *, struct rlmd_usage *);

/* The whole result object, as `rlmd exec --json` or `rlmd plan` prints it, without a
 * line feed. */
RLMD_API struct rlmd_text rlmd_result_json(const struct rlmd_result *);

/* Metrics of a plan; all zero for a task. */
struct rlmd_plan_metrics;
RLMD_API const struct rlmd_plan_metrics *rlmd_result_metrics(const struct rlmd_result *);

#ifdef __cplusplus
}
#endif
