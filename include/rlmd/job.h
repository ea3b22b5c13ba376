/*
 * rlmd/job.h - one task or one plan, answered.
 *
 * rlmd_job_start() begins a job of an engine; it tells what happens through its
 * hooks, and its end once and last. Nothing calls back but from the engine's
 * loop, so never before a function here has returned. A task is answered by a
 * run: a model that writes Python, whose code may call models and further runs.
 * A plan is operations that are model calls and runs (rlmd/plan.h).
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

/* Of a job and all below it. */
struct rlmd_limits {
	size_t size;
	int64_t cost;           /* 0: 5 dollars. RLMD_NOTHING: only what is free */
	int64_t tokens;         /* input and output; 0: 500,000 */
	int64_t time_ms;        /* 0: 300,000; from its start on */
	int64_t max_depth;      /* 0: 2; RLMD_NOTHING: no sub-runs. At most 16 */
	int64_t max_iterations; /* turns of the root, and half of them of a sub-run;
				   0: 30 */
	int64_t calls;          /* of models; 0: 10,000 */
	int64_t subruns;        /* 0: 1,000 */
};

/* What was used, by a job and all below it. */
struct rlmd_usage {
	size_t size;  /* set it before the call that fills the rest */
	int64_t cost; /* pico-dollars */
	int64_t tokens, input_tokens, output_tokens, cached_tokens;
	int64_t duration_ms;
	int64_t iterations, subcalls, llm_calls, max_depth_reached;
	bool estimated;       /* some of it was never reported by a provider */
	bool cost_complete;   /* false: the price of some call is unknown */
	int64_t cached_calls; /* of llm_calls: answered before, at no cost */
	/* Of cost, tokens and llm_calls: what earlier attempts have paid, and this one found in its
	 * journal. The rest is what this one has paid. */
	int64_t journaled_cost, journaled_tokens, journaled_calls;
};

/*
 * What hooks are told. All of it is lent until the hook returns. `run` is the
 * id of the run whose it is, as in the trace, and `depth` how deep that is: 0
 * of the root. Texts are whole but for what the trace leaves out
 * (docs/trace.md). Money is -1 where the price is unknown.
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
	int64_t depth, iteration; /* of which turn; 0: the look at the inputs, before
				     the first */
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

struct rlmd_subcall { /* what code, or a plan, asked for has ended */
	size_t size;
	enum rlmd_subcall_kind kind;
	const char *run; /* of a run: its own id */
	int64_t depth;   /* likewise */
	const char *model;
	struct rlmd_text prompt, answer; /* of a run: its task */
	int64_t tokens, cost, duration_ms;
	const char *error; /* the name of its kind; NULL: it succeeded */
};

/*
 * Each may be NULL. From inside any of them rlmd_job_interrupt(),
 * rlmd_job_cancel(), rlmd_job_free() and rlmd_job_start() may be called, of any
 * job, but not rlmd_engine_wait() and rlmd_engine_free().
 */
struct rlmd_hooks {
	size_t size;
	void (*iteration)(void *owner, struct rlmd_job *, const struct rlmd_iteration *);
	void (*code)(void *owner, struct rlmd_job *, const struct rlmd_code *);
	void (*output)(void *owner, struct rlmd_job *, const struct rlmd_output *);
	void (*subcall)(void *owner, struct rlmd_job *, const struct rlmd_subcall *);

	/* Four fifths of a limit are used, once of each: "Cost at 83% of budget". */
	void (*budget_warning)(void *owner, struct rlmd_job *, const char *text);

	/* The root model's words, as they come: what follows what came before. An
	 * attempt that is made again begins with an empty text. */
	void (*delta)(void *owner, struct rlmd_job *, struct rlmd_text words);

	/* Each event of the trace (docs/trace.md), the last being "result": one line
	 * of JSON, without its line feed. */
	void (*event)(void *owner, struct rlmd_job *, struct rlmd_text json);

	/* The names of those that are told, up to a NULL; NULL: all. The others are
	 * not even made, but have their numbers ("seq"). Lent to rlmd_job_start(). */
	const char *const *events;

	/* Once, last. The result is lent until the job is freed. */
	void (*end)(void *owner, struct rlmd_job *, const struct rlmd_result *);
	void *owner; /* lent until the job is freed */

	/*
	 * Of a task: whether this answer will do, before it is taken. To be said by
	 * rlmd_check_accept() or rlmd_check_reject(), now or later, once, also where
	 * the job has ended meanwhile. NULL: every answer will.
	 */
	void (*check)(void *owner, struct rlmd_job *, struct rlmd_text answer, struct rlmd_check *);
};

/* The answer is taken. The check is gone, as after the next. */
RLMD_API void rlmd_check_accept(struct rlmd_check *);

/*
 * It is not: the model is told what is wrong, and tries again with the turns that
 * it has left, and once more where its answer was forced. If none is accepted, the
 * job fails with RLMD_ERROR_SCHEMA. `wrong` is for the model: what, where, and how
 * it is to be; a few lines.
 */
RLMD_API void rlmd_check_reject(struct rlmd_check *, const char *wrong);

/*
 * What a job has had, kept by its host, so that another attempt at the same job
 * (the same options, in this process or another one, after whatever end of the
 * first) finds it again and pays only for what it has not had: answers of models
 * and how calls failed, with what they were billed; what functions of the host's
 * have returned; what code was told with a time or a rest of the budget in it.
 *
 * An entry is known by a key, text of at most 80 of the characters 0-9, a-f and -,
 * and a number from 0. Its bytes are UTF-8 without meaning for the host, mostly
 * some kilobytes; their form has a version, and a later library reads them.
 * A journal is of one job. Who can write to it can have the job believe anything.
 */
struct rlmd_journal {
	size_t size;

	/* Whether an entry is there, and its bytes, which are lent until the loop turns. At once:
	 * the host has read them before. Comes from the loop. */
	bool (*look)(void *owner, const char *key, int64_t number, struct rlmd_text *ret);

	/* Keeps one, for good: say that it is by rlmd_journal_kept(), or why not by
	 * rlmd_journal_failed(), now or later, once, also where the job has ended meanwhile. The
	 * job uses what it has had only then. Several may be under way, to be kept in any order.
	 * Key and bytes are lent until it returns. From inside of it the job may be cancelled, but
	 * not freed. Comes from the loop. */
	void (*keep)(void *owner, const char *key, int64_t number, struct rlmd_text bytes,
		     struct rlmd_journal_entry *);
	void *owner; /* lent until the job is freed */
};

/* The entry's handle is gone, as after the next. */
RLMD_API void rlmd_journal_kept(struct rlmd_journal_entry *);

/* What the entry says that a model was billed for it; zero of all others. For a host that counts
 * by its journals what was spent; before either of the others. */
RLMD_API struct rlmd_amount rlmd_journal_entry_bill(const struct rlmd_journal_entry *);

/* The job ends with this error; NULL, or without a kind: with RLMD_ERROR_INTERNAL. */
RLMD_API void rlmd_journal_failed(struct rlmd_journal_entry *, const struct rlmd_error *);

/* Either a task or a plan. What is not said to be lent is copied, or
 * referenced. */
struct rlmd_job_options {
	size_t size;
	struct rlmd_text task;                 /* UTF-8, or nearly so */
	const struct rlmd_context *context;    /* of a task; NULL: none */
	struct rlmd_plan_file *plan;           /* lent until the job is freed, which sets the
						  owners of its operations; or NULL */
	const struct rlmd_function *functions; /* of the host's, that code may call (function.h) */
	size_t function_count;
	const char *provider;      /* a registered name; NULL: the first */
	const char *model;         /* "MODEL", or "PROVIDER/MODEL"; NULL: the provider's default */
	const char *subcall_model; /* of all below the root; NULL: as `model` */
	struct rlmd_sandbox *sandbox; /* the engine's; NULL: its default one, if code is to run */
	const struct rlmd_limits *limits; /* NULL: all zero */
	struct rlmd_account *account; /* who pays, too, beside these limits; NULL: nobody else */
	unsigned weight; /* its share of workers and calls beside other jobs, to 1000; 0: 1 */
	int64_t block_timeout_ms;  /* of one block of code; 0: 30,000 */
	int64_t max_output;        /* characters that the model is told of one block; 0:
				      50,000 */
	int64_t max_output_tokens; /* of one reply; 0: as usual for the model */
	int64_t grace_ms;          /* for the answer after an interruption; 0: 15,000; or
				      RLMD_NOTHING */
	int64_t max_parallel;      /* model calls of this job at once; 0: 4 */
	int64_t downgrade;         /* per cent of a limit: with less left a sub-run is one
				      call; 0: 20; or    RLMD_NOTHING */
	bool strict;               /* a forced answer is a failure, RLMD_ERROR_BUDGET */
	bool without_tree;         /* the result of a task has no "trace", which takes
				      time and memory with each call */
	bool with_temperature;
	double temperature; /* from 0 to 2, if it is to be set */
	const char *const
		*stops;         /* a reply ends before the first of these, up to a NULL; or NULL */
	const char *prompt;     /* a prompt profile, or a directory with one; NULL: by model */
	const char *record_dir; /* each exchange with a provider is kept there; NULL: off */
	const char *replay_dir; /* answers come from there, and nobody is asked; NULL: off */
	const char *const *warnings;    /* what its user was warned of before, up to a
					   NULL: for the    result; or NULL */
	const struct rlmd_hooks *hooks; /* NULL: none */
	const char *cache_dir; /* answers that were had before come from there, and new ones are
				  kept; NULL: off, as with replay_dir */
	int64_t cache_age_ms;  /* what is older is asked for again; 0: seven days */
	int64_t cache_size;    /* bytes that it may hold; 0: a gigabyte */
	const char *tenant;    /* whose it is: what a cache has of others is not for it; or NULL */

	/*
	 * Of a task: a JSON Schema (2020-12), as JSON text of at most 64 KiB, which the
	 * answer has to satisfy; empty: none. What is wrong with one is told to the model,
	 * which tries again, as after rlmd_check_reject(). The output is that JSON alone.
	 * Operations of a plan have schemas of their own.
	 */
	struct rlmd_text schema;

	const struct rlmd_journal *journal; /* NULL: none; off, as with replay_dir */
	/* What its code may name as models of calls and sub-runs, beside those two above; `*`
	 * stands for anything. NULL: any model of its provider. */
	const char *const *models;
	size_t model_count;

	struct rlmd_group *group; /* of the same engine: whose turns it has (rlmd/group.h); NULL:
				     its own */
};

/*
 * Never calls back before it returns: what fails later is the job's result.
 * RLMD_ERROR_USAGE for options that make no sense, and for an unknown provider
 * or prompt; RLMD_ERROR_AUTH for a provider without its key; RLMD_ERROR_INPUT
 * for recordings that cannot be read; RLMD_ERROR_BUDGET where only what is free
 * is allowed, and the model is not. RLMD_ERROR_SANDBOX, where the default
 * sandbox is started for it, and for a schema, what checks answers, which needs
 * Python's jsonschema. What is no schema is the job's result: it ends with
 * RLMD_ERROR_USAGE, before anybody is asked. The engine owns it, until it is freed by
 * rlmd_job_free() or with the engine.
 */
RLMD_API struct rlmd_job *rlmd_job_start(struct rlmd_engine *, const struct rlmd_job_options *,
					 struct rlmd_error *);

/* Whether it would be refused, but for the sandbox: nothing is started. */
RLMD_API bool rlmd_job_check(struct rlmd_engine *, const struct rlmd_job_options *,
			     struct rlmd_error *);

/*
 * The same; and where a task would not be refused, a connection is made ahead to the provider that
 * it asks first, while the loop turns: to its address, with TLS, and no request is sent on it. The
 * first one takes it, or has its failure. None is made where the answer may be in a cache or comes
 * from a recording.
 */
RLMD_API bool rlmd_job_prepare(struct rlmd_engine *, const struct rlmd_job_options *,
			       struct rlmd_error *);

/*
 * What it would begin with, and what it could come to at most, as one line of
 * JSON: what `rlmd --dry-run --json` shows. Nobody is asked, and no key is
 * needed. The caller frees it; NULL: as rlmd_job_start().
 */
RLMD_API char *rlmd_job_dry_run(struct rlmd_engine *, const struct rlmd_job_options *,
				struct rlmd_error *);

/*
 * Of a task: no new calls, those in flight are cancelled, and an answer is
 * asked for at once, which has the grace to come. A plan ends, with what there
 * is. Takes effect from the loop. A job that has ended, and NULL, are fine in
 * both.
 */
RLMD_API void rlmd_job_interrupt(struct rlmd_job *);

/* Ends as soon as the loop turns, with RLMD_ERROR_CANCELLED and no answer: what
 * was used is counted, calls in flight by their estimate. */
RLMD_API void rlmd_job_cancel(struct rlmd_job *);

/* Cancels it, where it has not ended; no callback follows. NULL is fine. */
RLMD_API void rlmd_job_free(struct rlmd_job *);

/* How it is getting on; counts all below it. */
struct rlmd_job_status {
	size_t size;   /* set it before the call that fills the rest */
	int64_t turn;  /* of the root, from 1; 0: it has not begun, or is a plan */
	int64_t depth; /* of the deepest run that is alive */
	int64_t calls_in_flight;
	int64_t tokens, cost, elapsed_ms;
	int64_t max_cost;                     /* RLMD_UNLIMITED: none */
	int64_t operations, operations_ended; /* of a plan */
	bool interrupted;
};

/* False, and nothing is filled, where the size is none that there was. */
RLMD_API bool rlmd_job_get_status(const struct rlmd_job *, struct rlmd_job_status *);

/* What there was to warn of before it began, by number from 0: of its inputs,
 * provider and prices. Lent; NULL: there are no more. The result has them, too.
 */
RLMD_API const char *rlmd_job_warning(const struct rlmd_job *, size_t index);

/* NULL before its end; lent until the job is freed, as is all that the next
 * return. */
RLMD_API const struct rlmd_result *rlmd_job_result(const struct rlmd_job *);

RLMD_API bool rlmd_result_success(const struct rlmd_result *);
RLMD_API const struct rlmd_error *rlmd_result_error(const struct rlmd_result *); /* NULL: none */

/* The answer; of a plan empty. May stand beside an error, where it was
 * interrupted or is `strict`.
 */
RLMD_API struct rlmd_text rlmd_result_output(const struct rlmd_result *);

/* Why a task ended; RLMD_STOP_NONE of a plan. */
RLMD_API enum rlmd_stop rlmd_result_stop(const struct rlmd_result *);
RLMD_API bool rlmd_result_forced(const struct rlmd_result *); /* it was asked for too early */

/* Of one that failed with RLMD_ERROR_BUDGET: the name of the account above the job whose limit on
 * cost or tokens it was, so that it may succeed once that has more; NULL: it was the job's own. */
RLMD_API const char *rlmd_result_limited_by(const struct rlmd_result *);

/* False, and nothing is filled, where the size is none that there was. */
RLMD_API bool rlmd_result_usage(const struct rlmd_result *, struct rlmd_usage *);

/* The whole result object, as `rlmd exec --json` or `rlmd plan` prints it,
 * without line feed. */
RLMD_API struct rlmd_text rlmd_result_json(const struct rlmd_result *);

/* Of a plan; of a task all zero. */
struct rlmd_plan_metrics;
RLMD_API const struct rlmd_plan_metrics *rlmd_result_metrics(const struct rlmd_result *);

#ifdef __cplusplus
}
#endif
