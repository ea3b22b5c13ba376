/*
 * rlmd/plan.h - operations that run in parallel, race, or wait for each other.
 *
 * A plan is a list of operations and how they hang together; an execution runs
 * it on an event base of libevent. What an operation does is the business of an
 * orchestrator, what may be spent that of a budget manager: the caller gives
 * both. docs/plans.md in the source tells the semantics at length.
 *
 * Everything happens in one thread, and what is told comes from the loop: nothing
 * calls back before it returns, but what an orchestrator reports by
 * rlmd_call_started() and rlmd_call_done(), and cancel() of what
 * rlmd_execution_stop() and rlmd_execution_free() end. From inside start(),
 * on_result and on_done any function may be called, rlmd_execution_free() too; the
 * other callbacks may call nothing here. What is lent stays the lender's. NULL in
 * the place of a plan, an execution or a call is one of nothing: it has no
 * operations, no texts, and nothing to do.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rlmd/rlmd.h>

#ifdef __cplusplus
extern "C" {
#endif

struct event_base;
struct rlmd_call;
struct rlmd_execution;
struct rlmd_plan;
struct rlmd_plan_file;

enum {
	RLMD_PLAN_OPERATIONS_MAX = 100000,
	RLMD_PLAN_DEPENDENCIES_MAX = 1000000,              /* of all operations together */
	RLMD_PLAN_ID_MAX = 128,                            /* bytes */
	RLMD_PLAN_PARALLEL_MAX = RLMD_PLAN_OPERATIONS_MAX, /* all of them */
	RLMD_PLAN_TEXT_MAX = 64 << 20,                     /* bytes of a plan file */
};

#define RLMD_PLAN_NOBODY     SIZE_MAX  /* no operation's index */
#define RLMD_PLAN_UNLIMITED  INT64_MAX /* of a budget */
#define RLMD_PLAN_NO_TIMEOUT (-1)

/* What went wrong. */

enum rlmd_plan_error_kind {
	RLMD_PLAN_OK,
	RLMD_PLAN_ERROR_PLAN,       /* this is no plan; nothing was run */
	RLMD_PLAN_ERROR_TIMEOUT,    /* the operation's time was over */
	RLMD_PLAN_ERROR_CANCELLED,  /* somebody ended it: the caller, a winner, a failure */
	RLMD_PLAN_ERROR_DEPENDENCY, /* what it depends on failed */
	RLMD_PLAN_ERROR_BUDGET,     /* refused, or stopped, for lack of budget */
	RLMD_PLAN_ERROR_INPUT,      /* its input is too large with the responses put in */
	RLMD_PLAN_ERROR_ALL_FAILED, /* no alternative succeeded */
	RLMD_PLAN_ERROR_OPERATION,  /* it failed, in a way that the orchestrator names */
};

/* "timeout", "cancelled", "dependency", ...; "none" for RLMD_PLAN_OK. Static. */
RLMD_API const char *rlmd_plan_error_name(enum rlmd_plan_error_kind);

/* Filled by functions that fail, untouched by those that succeed; NULL: nobody wants to know. */
struct rlmd_plan_error {
	enum rlmd_plan_error_kind kind;
	char text[512]; /* UTF-8, control characters escaped */
};

/* Plans. */

enum rlmd_operation_type {
	RLMD_OPERATION_QUERY,
	RLMD_OPERATION_TRANSFORM,
	RLMD_OPERATION_VERIFY,
	RLMD_OPERATION_SYNTHESIZE,
};

enum { RLMD_OPERATION_TYPES = RLMD_OPERATION_SYNTHESIZE + 1 };

enum rlmd_operation_mode {
	RLMD_OPERATION_CALL, /* of a model */
	RLMD_OPERATION_RUN,  /* a whole RLM run */
};

/* Zero is a query without a name, a timeout of its own, or dependencies. All pointers are lent. */
struct rlmd_operation {
	const char *id; /* UTF-8: ASCII letters and digits, - _ . : / @ +, all above; NULL: none */
	enum rlmd_operation_type type;
	enum rlmd_operation_mode mode; /* for the orchestrator */
	struct rlmd_text input;
	const char *model;         /* for the orchestrator; NULL: it chooses */
	struct rlmd_text context;  /* for the orchestrator */
	bool context_is_json;      /* the context is JSON text of an object or an array */
	struct rlmd_text metadata; /* JSON text of an object of strings, or empty */
	int priority;              /* the higher starts first */
	int64_t timeout_ms;        /* 0: the configuration's; negative: none */
	const char *const *depends_on;
	size_t depends_count;
	void *owner;             /* of no meaning here */
	struct rlmd_text schema; /* for the orchestrator: JSON text; empty: none */
};

enum rlmd_plan_strategy {
	RLMD_PLAN_DEPENDENCY_AWARE, /* each starts when its last dependency ended */
	RLMD_PLAN_PARALLEL,         /* all at once; dependencies are ignored */
	RLMD_PLAN_SPECULATIVE,      /* all at once; the first success ends the others */
	RLMD_PLAN_SEQUENTIAL,       /* one after the other, as listed, dependencies first */
};

enum { RLMD_PLAN_STRATEGIES = RLMD_PLAN_SEQUENTIAL + 1 };

struct rlmd_plan_description {
	const struct rlmd_operation *operations; /* lent as long as the plan lives */
	size_t count;
	enum rlmd_plan_strategy strategy;
	bool literal; /* inputs are taken as they are: {{id}} is no substitution */
};

/*
 * Checks everything that can be checked before anything runs: names, dependencies, cycles, the
 * substitutions in the inputs. NULL and RLMD_PLAN_ERROR_PLAN for what is no plan. Time and memory
 * grow with operations, dependencies and the sum of the inputs; nothing of them is copied.
 */
RLMD_API struct rlmd_plan *rlmd_plan_new(const struct rlmd_plan_description *,
					 struct rlmd_plan_error *);

/* No execution may need it any more; NULL is fine. */
RLMD_API void rlmd_plan_free(struct rlmd_plan *);

RLMD_API size_t rlmd_plan_count(const struct rlmd_plan *);
RLMD_API const struct rlmd_operation *rlmd_plan_operation(const struct rlmd_plan *, size_t index);

/*
 * The operations that are not completed and whose dependencies all are, in order. `completed` and
 * `ret_indices` have one place for each operation. Returns how many it wrote.
 */
RLMD_API size_t rlmd_plan_ready(const struct rlmd_plan *, const bool *completed,
				size_t *ret_indices);

/* What the execution asks of others. */

/* Tokens of one operation so far. */
struct rlmd_plan_usage {
	int64_t tokens;
	bool estimated; /* not reported by who knows */
};

/* How an operation ended; what it points to is lent until rlmd_call_done() returns. */
struct rlmd_plan_answer {
	struct rlmd_text response;
	struct rlmd_plan_usage usage;
	enum rlmd_plan_error_kind error; /* RLMD_PLAN_OK: it succeeded */
	const char *error_name;          /* static; NULL: that of its kind */
	const char *message;             /* of the error */
};

struct rlmd_orchestrator {
	/* Begins. `input` is the operation's with all substitutions made, lent until the end. Comes
	 * again for an operation that was cancelled while it waited. */
	void (*start)(void *owner, const struct rlmd_operation *, struct rlmd_text input,
		      struct rlmd_call *);
	/* Ends it at once and says what it had used; no rlmd_call_done() for it may follow. Where
	 * it waits, and the budget allows less than it did, it is only put back: it will start
	 * again. NULL: nothing goes on that could be ended. */
	void (*cancel)(void *owner, const struct rlmd_operation *, struct rlmd_call *,
		       struct rlmd_plan_usage *ret_usage);
	void *owner; /* lent */
	/* start() only gets in line for something: an operation waits until rlmd_call_started(),
	 * and uses nothing. False: it runs from its start(). */
	bool queues;
};

/* Of an orchestrator that `queues`: it runs from now on. Its time-out counts from here, and so do
 * duration and parallelism. Once is enough; may come from inside start(). */
RLMD_API void rlmd_call_started(struct rlmd_call *);

/* The orchestrator's report, once for each start; may come from inside start() as its last act.
 * The execution may be gone when it returns. */
RLMD_API void rlmd_call_done(struct rlmd_call *, const struct rlmd_plan_answer *);

/* Zero: nothing is limited. */
struct rlmd_budget_manager {
	/* What is not spent; what operations under way have only reserved is not spent. */
	int64_t (*remaining)(void *owner);
	int64_t (*estimate)(void *owner); /* of one operation, in the same unit */
	/* May this one start? NULL: each may. `ret_reason` is static, or lent until the next. */
	bool (*admit)(void *owner, const struct rlmd_operation *, const char **ret_reason);
	void *owner; /* lent */
};

/* What the execution tells. */

enum rlmd_plan_status {
	RLMD_PLAN_PENDING, /* waits, or runs */
	RLMD_PLAN_SUCCEEDED,
	RLMD_PLAN_FAILED,
	RLMD_PLAN_CANCELLED, /* ended by somebody else's decision, perhaps before it began */
};

struct rlmd_plan_result {
	const struct rlmd_operation *operation;
	size_t index; /* in the plan */
	enum rlmd_plan_status status;
	enum rlmd_plan_error_kind error;
	const char *error_name;    /* static */
	const char *message;       /* of the error; "" where there is none */
	struct rlmd_text response; /* empty where it did not succeed */
	struct rlmd_plan_usage usage;
	int64_t duration_ms; /* of its running; 0 where it never did */
};

enum rlmd_plan_outcome {
	RLMD_OUTCOME_SUCCEEDED,
	RLMD_OUTCOME_FAILED,
	RLMD_OUTCOME_TIMEOUT,
	RLMD_OUTCOME_DEPENDENCY,
	RLMD_OUTCOME_CANCELLED,
};

enum { RLMD_PLAN_OUTCOMES = RLMD_OUTCOME_CANCELLED + 1 };

struct rlmd_plan_metrics {
	int64_t operations[RLMD_OPERATION_TYPES][RLMD_PLAN_OUTCOMES]; /* that ended */
	int64_t tokens;
	int64_t executions[RLMD_PLAN_STRATEGIES];
	int64_t busy_ms;          /* time of all operations that ran */
	int64_t slot_ms;          /* time of all slots that were open to them */
	int64_t parallel_highest; /* that ran at once */
	int64_t budget_limited;   /* how often the budget changed the parallelism */
	int64_t races, races_won;
};

RLMD_API void rlmd_plan_metrics_add(struct rlmd_plan_metrics *total,
				    const struct rlmd_plan_metrics *);
RLMD_API double rlmd_plan_metrics_utilisation(const struct rlmd_plan_metrics *); /* 0 to 1 */
RLMD_API double rlmd_plan_metrics_win_rate(const struct rlmd_plan_metrics *);    /* 0 to 1 */

/* In the text format of Prometheus; the caller frees it. */
RLMD_API char *rlmd_plan_metrics_text(const struct rlmd_plan_metrics *);

struct rlmd_plan_summary {
	enum rlmd_plan_error_kind error; /* of the whole: CANCELLED, ALL_FAILED, what failed fast */
	const char *error_name;          /* static */
	const char *message;             /* "" where there is no error */
	size_t winner;                   /* index, or RLMD_PLAN_NOBODY */
	size_t succeeded, failed, cancelled;
	struct rlmd_plan_usage usage; /* of all, the cancelled included */
	int64_t duration_ms;
	struct rlmd_plan_metrics metrics;
};

enum rlmd_plan_event_kind {
	RLMD_PLAN_EVENT_START,           /* of the execution */
	RLMD_PLAN_EVENT_OPERATION_START, /* it runs */
	RLMD_PLAN_EVENT_OPERATION_END,
	RLMD_PLAN_EVENT_WINNER,
	RLMD_PLAN_EVENT_PARALLELISM, /* the budget allows less than was configured */
	RLMD_PLAN_EVENT_END,
};

/* One line of the log; pointers are lent until the callback returns. */
struct rlmd_plan_event {
	enum rlmd_plan_event_kind kind;
	enum rlmd_plan_strategy strategy;
	int64_t elapsed_ms;       /* since the execution's start */
	size_t count;             /* operations of the plan */
	size_t index;             /* OPERATION_START: in the plan */
	const char *id;           /* OPERATION_START: or NULL */
	size_t wanted;            /* START, PARALLELISM: at once, if the budget allows */
	size_t parallel;          /* PARALLELISM: at once, as it is now */
	int64_t budget_remaining; /* PARALLELISM */
	int64_t budget_estimate;  /* PARALLELISM */
	const struct rlmd_plan_result *result;   /* OPERATION_END, WINNER */
	const struct rlmd_plan_summary *summary; /* END */
};

/* The result and all in it is lent until the callback returns. Once for each operation. */
typedef void rlmd_plan_result_fn(void *owner, const struct rlmd_plan_result *);

/* Once, after the last result. */
typedef void rlmd_plan_done_fn(void *owner, const struct rlmd_plan_summary *);

/* For logs, events and status lines. */
typedef void rlmd_plan_log_fn(void *owner, const struct rlmd_plan_event *);

/* Executions. */

enum rlmd_plan_failure {
	RLMD_PLAN_FAIL_DEPENDENTS, /* what depends on it fails too, however far; the rest goes on */
	RLMD_PLAN_FAIL_FAST,       /* everything else is cancelled */
	RLMD_PLAN_CONTINUE_ON_ERROR, /* dependents get the error's text in place of the response */
};

/* Zero is the default everywhere. */
struct rlmd_plan_config {
	size_t max_parallel; /* 4 */
	int64_t timeout_ms;  /* of each operation: 30,000; RLMD_PLAN_NO_TIMEOUT: none */
	enum rlmd_plan_failure partial_failure;
	size_t input_max; /* bytes, with all responses put in: 16 MiB */
};

struct rlmd_execution_options {
	struct rlmd_plan_config config;
	struct rlmd_orchestrator orchestrator;
	struct rlmd_budget_manager budget;
	bool keep;                      /* keeps the responses for rlmd_execution_result() */
	rlmd_plan_result_fn *on_result; /* each may be NULL */
	rlmd_plan_log_fn *on_log;
	rlmd_plan_done_fn *on_done;
	void *owner; /* lent: of the three */
};

/* The base and the plan are lent until it is freed. NULL where one of the three, or the
 * orchestrator's start(), is missing. */
RLMD_API struct rlmd_execution *rlmd_execution_start(struct event_base *, const struct rlmd_plan *,
						     const struct rlmd_execution_options *);

/* Cancels everything under way now, and tells the results from the loop as ever. */
RLMD_API void rlmd_execution_stop(struct rlmd_execution *);

/* Cancels what is under way; nobody is told any more. NULL is fine. */
RLMD_API void rlmd_execution_free(struct rlmd_execution *);

/* At any time; what runs is let run as it began. 0 means the default, as above. A new parallelism
 * holds from the loop's next turn on. */
RLMD_API void rlmd_execution_set_max_parallel(struct rlmd_execution *, size_t);
RLMD_API void rlmd_execution_set_timeout(struct rlmd_execution *, int64_t ms);
RLMD_API void rlmd_execution_set_partial_failure(struct rlmd_execution *, enum rlmd_plan_failure);

/* How many may run at once at this moment; 0: it has not begun. */
RLMD_API size_t rlmd_execution_parallelism(const struct rlmd_execution *);

/* As far as it is known now; lent until the next call of the library for this execution. Of an
 * index that there is not, RLMD_PLAN_NOBODY's. */
RLMD_API struct rlmd_plan_result rlmd_execution_result(const struct rlmd_execution *, size_t index);
RLMD_API struct rlmd_plan_summary rlmd_execution_summary(const struct rlmd_execution *);
RLMD_API const struct rlmd_plan *rlmd_execution_plan(const struct rlmd_execution *);

/* JSON. */

/* The file form of a plan, as docs/plans.md has it. The text is not needed any more afterwards. */
RLMD_API struct rlmd_plan_file *rlmd_plan_file_new(struct rlmd_text, struct rlmd_plan_error *);
RLMD_API void rlmd_plan_file_free(struct rlmd_plan_file *); /* the plan, too; NULL is fine */
RLMD_API const struct rlmd_plan *rlmd_plan_file_plan(const struct rlmd_plan_file *);
RLMD_API const struct rlmd_plan_config *rlmd_plan_file_config(const struct rlmd_plan_file *);

/* The operations of the plan: their owners may be set. */
RLMD_API struct rlmd_operation *rlmd_plan_file_operations(struct rlmd_plan_file *);

/* One JSON object each, without a line feed; the caller frees it. An execution's has `results`,
 * `total`, `winner`, `cancelled`. */
RLMD_API char *rlmd_execution_json(const struct rlmd_execution *);
RLMD_API char *rlmd_plan_event_json(const struct rlmd_plan_event *);

#ifdef __cplusplus
}
#endif
