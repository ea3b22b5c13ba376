/*
 * rlmd/plan.h - operations that run in parallel, race, or wait for each other.
 *
 * A plan is a list of operations with dependencies; an execution runs it on an
 * event base of libevent. An orchestrator carries the operations out and a budget
 * manager limits spending: the caller gives both. docs/plans.md in the source
 * describes the semantics.
 *
 * Use all of it in one thread. Callbacks come from the loop, with two exceptions:
 * rlmd_call_started() and rlmd_call_done() may call back before they return, and
 * rlmd_execution_stop() and rlmd_execution_free() call cancel(). start(),
 * on_result() and on_done() may call any function here, rlmd_execution_free() too;
 * the other callbacks may call none. NULL as a plan, an execution or a call is
 * accepted everywhere, and does nothing.
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

/* The limits of plans; those of a worker's code are made of these (worker/generate_messages.py). */
enum {
	RLMD_PLAN_OPERATIONS_MAX = 100000,
	RLMD_PLAN_DEPENDENCIES_MAX = 1000000, /* of all operations together */
	RLMD_PLAN_ID_MAX = 128,               /* bytes */
	RLMD_PLAN_PARALLEL_MAX = 100000,      /* all of them */
	RLMD_PLAN_PRIORITY_MAX = 1000000000,  /* and as far below zero; of plan files */
	RLMD_PLAN_TEXT_MAX = 64 << 20,        /* bytes of a plan file */
};

#define RLMD_PLAN_TIMEOUT_MAX INT64_C(1000000000000) /* ms; of plan files */

#define RLMD_PLAN_NOBODY     SIZE_MAX  /* an index that no operation has */
#define RLMD_PLAN_UNLIMITED  INT64_MAX /* of a budget */
#define RLMD_PLAN_NO_TIMEOUT (-1)

/* How an operation failed. */
enum rlmd_plan_error_kind {
	RLMD_PLAN_OK,
	RLMD_PLAN_ERROR_TIMEOUT,    /* the operation's time was over */
	RLMD_PLAN_ERROR_CANCELLED,  /* by the caller, by a winner, or because of a failure */
	RLMD_PLAN_ERROR_DEPENDENCY, /* what it depends on failed */
	RLMD_PLAN_ERROR_BUDGET,     /* refused, or stopped, for lack of budget */
	RLMD_PLAN_ERROR_INPUT,      /* its input is too large with the responses put in */
	RLMD_PLAN_ERROR_ALL_FAILED, /* no alternative succeeded */
	RLMD_PLAN_ERROR_OPERATION,  /* it failed; the orchestrator names the error */
};

/* "timeout", "cancelled", "dependency", ...; "none" for RLMD_PLAN_OK. Static. */
RLMD_API const char *rlmd_plan_error_name(enum rlmd_plan_error_kind);

/* Plans. */

enum rlmd_operation_type {
	RLMD_OPERATION_QUERY,
	RLMD_OPERATION_TRANSFORM,
	RLMD_OPERATION_VERIFY,
	RLMD_OPERATION_SYNTHESIZE,
};

enum rlmd_operation_mode {
	RLMD_OPERATION_CALL, /* of a model */
	RLMD_OPERATION_RUN,  /* a whole RLM run */
};

/* Zero after the size is a query without a name, a time-out of its own, or dependencies. All
 * pointers are lent as long as the plan lives. */
struct rlmd_operation {
	size_t size;    /* sizeof(struct rlmd_operation) */
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
	void *owner;             /* the caller's; the library does not read it */
	struct rlmd_text schema; /* for the orchestrator: JSON text; empty: none */
};

enum rlmd_plan_strategy {
	RLMD_PLAN_DEPENDENCY_AWARE, /* each starts when its last dependency ended */
	RLMD_PLAN_PARALLEL,         /* all at once; dependencies are ignored */
	RLMD_PLAN_SPECULATIVE,      /* all at once; the first success ends the others */
	RLMD_PLAN_SEQUENTIAL,       /* one after the other, as listed, dependencies first */
};

#define RLMD_OPERATION_INIT RLMD_INIT(struct rlmd_operation)

struct rlmd_plan_description {
	size_t size;                             /* sizeof(struct rlmd_plan_description) */
	const struct rlmd_operation *operations; /* all of one size; copied */
	size_t count;
	enum rlmd_plan_strategy strategy;
	bool literal; /* inputs are taken as they are: {{id}} is no substitution */
};

#define RLMD_PLAN_DESCRIPTION_INIT RLMD_INIT(struct rlmd_plan_description)

/*
 * Checks names, dependencies, cycles and the substitutions in the inputs. NULL and RLMD_ERROR_INPUT
 * if something is wrong. Time and memory grow with operations, dependencies and the sum of the
 * inputs. Texts and arrays that operations point to are not copied.
 */
RLMD_API struct rlmd_plan *rlmd_plan_new(const struct rlmd_plan_description *, struct rlmd_error *);

/* No execution may need it any more; NULL is fine. */
RLMD_API void rlmd_plan_free(struct rlmd_plan *);

RLMD_API size_t rlmd_plan_count(const struct rlmd_plan *);
RLMD_API const struct rlmd_operation *rlmd_plan_operation(const struct rlmd_plan *, size_t index);
RLMD_API void rlmd_plan_set_owner(struct rlmd_plan *, size_t index, void *owner);

/*
 * The operations that are not completed and whose dependencies are, in order. `completed` and
 * `ret_indices` have one element for each operation. Returns the number of indices.
 */
RLMD_API size_t rlmd_plan_ready(const struct rlmd_plan *, const bool *completed,
				size_t *ret_indices);

/* The orchestrator and the budget manager. */

/* The tokens of a cancelled operation. */
struct rlmd_plan_usage {
	size_t size; /* of the library's version of this */
	int64_t tokens;
	bool estimated; /* the provider has not reported them */
};

/* How an operation ended; what it points to is lent until rlmd_call_done() returns. */
struct rlmd_plan_answer {
	size_t size; /* sizeof(struct rlmd_plan_answer) */
	struct rlmd_text response;
	int64_t tokens;
	bool estimated;                  /* the provider has not reported the tokens */
	enum rlmd_plan_error_kind error; /* RLMD_PLAN_OK: it succeeded */
	const char *error_name;          /* static; NULL: that of its kind */
	const char *message;             /* of the error */
};

#define RLMD_PLAN_ANSWER_INIT RLMD_INIT(struct rlmd_plan_answer)

struct rlmd_orchestrator {
	size_t size; /* sizeof(struct rlmd_orchestrator) */
	/* Begins an operation. `input` has all substitutions and is lent until the end. Called
	 * again for an operation that was cancelled while it waited. */
	void (*start)(void *owner, const struct rlmd_operation *, struct rlmd_text input,
		      struct rlmd_call *);
	/* Ends an operation at once and fills in the tokens that it used; rlmd_call_done() must not
	 * follow. An operation that waits may be started again later, if the budget allows less
	 * than before. NULL: operations cannot be ended. */
	void (*cancel)(void *owner, const struct rlmd_operation *, struct rlmd_call *,
		       struct rlmd_plan_usage *ret_usage);
	void *owner; /* lent */
	/* True: an operation waits from start() to rlmd_call_started(), and uses nothing. False:
	 * it runs from start() on. */
	bool queues;
};

#define RLMD_ORCHESTRATOR_INIT RLMD_INIT(struct rlmd_orchestrator)

/* For an orchestrator that `queues`: the operation runs from now on. Its time-out, its duration and
 * the parallelism count from here. May be called from inside start(). */
RLMD_API void rlmd_call_started(struct rlmd_call *);

/* Ends an operation; once for each start(), possibly as its last statement. The execution may be
 * freed when it returns. */
RLMD_API void rlmd_call_done(struct rlmd_call *, const struct rlmd_plan_answer *);

/* Zero after the size: nothing is limited. */
struct rlmd_budget_manager {
	size_t size; /* sizeof(struct rlmd_budget_manager) */
	/* The rest of the budget; reservations of operations under way count as unspent. */
	int64_t (*remaining)(void *owner);
	int64_t (*estimate)(void *owner); /* the cost of one operation, in the same unit */
	/* Whether this operation may start. NULL: each may. `ret_reason` is static, or lent until
	 * the next. */
	bool (*admit)(void *owner, const struct rlmd_operation *, const char **ret_reason);
	void *owner; /* lent */
};

#define RLMD_BUDGET_MANAGER_INIT RLMD_INIT(struct rlmd_budget_manager)

/* Results. */

enum rlmd_plan_status {
	RLMD_PLAN_PENDING, /* waits, or runs */
	RLMD_PLAN_SUCCEEDED,
	RLMD_PLAN_FAILED,
	RLMD_PLAN_CANCELLED, /* ended from outside, perhaps before it began */
};

struct rlmd_plan_result {
	size_t size; /* sizeof(struct rlmd_plan_result); all else is filled in */
	const struct rlmd_operation *operation;
	size_t index; /* in the plan */
	enum rlmd_plan_status status;
	enum rlmd_plan_error_kind error;
	const char *error_name;    /* static */
	const char *message;       /* of the error; "" where there is none */
	struct rlmd_text response; /* empty where it did not succeed */
	int64_t tokens;
	bool estimated;      /* the provider has not reported the tokens */
	int64_t duration_ms; /* of its running; 0: it never ran */
};

#define RLMD_PLAN_RESULT_INIT RLMD_INIT(struct rlmd_plan_result)

enum rlmd_plan_outcome {
	RLMD_OUTCOME_SUCCEEDED,
	RLMD_OUTCOME_FAILED,
	RLMD_OUTCOME_TIMEOUT,
	RLMD_OUTCOME_DEPENDENCY,
	RLMD_OUTCOME_CANCELLED,
};

/* Counts of one execution, or of several that were added up. */
struct rlmd_plan_metrics;

RLMD_API struct rlmd_plan_metrics *rlmd_plan_metrics_new(void); /* all zero */
RLMD_API void rlmd_plan_metrics_free(struct rlmd_plan_metrics *);
RLMD_API void rlmd_plan_metrics_add(struct rlmd_plan_metrics *total,
				    const struct rlmd_plan_metrics *);

/* Operations of this type that ended in this way. */
RLMD_API int64_t rlmd_plan_metrics_operations(const struct rlmd_plan_metrics *,
					      enum rlmd_operation_type, enum rlmd_plan_outcome);

/* The time of all operations that ran over the time of all slots that were open to them. */
RLMD_API double rlmd_plan_metrics_utilisation(const struct rlmd_plan_metrics *); /* 0 to 1 */

/* Speculative executions with a winner over all of them. */
RLMD_API double rlmd_plan_metrics_win_rate(const struct rlmd_plan_metrics *); /* 0 to 1 */

/* In the text format of Prometheus; the caller frees it. */
RLMD_API char *rlmd_plan_metrics_text(const struct rlmd_plan_metrics *);

struct rlmd_plan_summary {
	size_t size; /* sizeof(struct rlmd_plan_summary); all else is filled in */
	enum rlmd_plan_error_kind error; /* of the plan: CANCELLED, ALL_FAILED, or the first error
					    with RLMD_PLAN_FAIL_FAST */
	const char *error_name;          /* static */
	const char *message;             /* "" where there is no error */
	size_t winner;                   /* index, or RLMD_PLAN_NOBODY */
	size_t succeeded, failed, cancelled;
	int64_t tokens; /* of all operations, cancelled ones included */
	bool estimated; /* a provider has not reported some of the tokens */
	int64_t duration_ms;
	const struct rlmd_plan_metrics *metrics; /* lent by the execution */
};

#define RLMD_PLAN_SUMMARY_INIT RLMD_INIT(struct rlmd_plan_summary)

enum rlmd_plan_event_kind {
	RLMD_PLAN_EVENT_START,           /* of the execution */
	RLMD_PLAN_EVENT_OPERATION_START, /* it runs */
	RLMD_PLAN_EVENT_OPERATION_END,
	RLMD_PLAN_EVENT_WINNER,
	RLMD_PLAN_EVENT_PARALLELISM, /* the budget allows fewer at once than configured */
	RLMD_PLAN_EVENT_END,
};

/* One line of the log; pointers are lent until the callback returns. */
struct rlmd_plan_event {
	size_t size; /* of the library's version of this */
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

/* Called once for each operation. The result is lent until it returns. */
typedef void rlmd_plan_result_fn(void *owner, const struct rlmd_plan_result *);

/* Called once, after the last result. */
typedef void rlmd_plan_done_fn(void *owner, const struct rlmd_plan_summary *);

/* For logs, events and status lines. */
typedef void rlmd_plan_log_fn(void *owner, const struct rlmd_plan_event *);

/* Executions. */

enum rlmd_plan_failure {
	RLMD_PLAN_FAIL_DEPENDENTS,   /* all operations that depend on it fail; the rest goes on */
	RLMD_PLAN_FAIL_FAST,         /* everything else is cancelled */
	RLMD_PLAN_CONTINUE_ON_ERROR, /* dependents get the error's text as the response */
};

/* Zero is the default everywhere. */
struct rlmd_plan_config {
	size_t size;         /* sizeof(struct rlmd_plan_config) */
	size_t max_parallel; /* 4 */
	int64_t timeout_ms;  /* of each operation: 30,000; RLMD_PLAN_NO_TIMEOUT: none */
	enum rlmd_plan_failure partial_failure;
	size_t input_max; /* bytes, with all responses put in: 16 MiB */
};

#define RLMD_PLAN_CONFIG_INIT RLMD_INIT(struct rlmd_plan_config)

/* The structs that it points to are copied. */
struct rlmd_execution_options {
	size_t size;                                  /* sizeof(struct rlmd_execution_options) */
	const struct rlmd_plan_config *config;        /* NULL: the defaults */
	const struct rlmd_orchestrator *orchestrator; /* with a start() */
	const struct rlmd_budget_manager *budget;     /* NULL: nothing is limited */
	bool keep;                      /* keeps the responses for rlmd_execution_result() */
	rlmd_plan_result_fn *on_result; /* each may be NULL */
	rlmd_plan_log_fn *on_log;
	rlmd_plan_done_fn *on_done;
	void *owner; /* lent: of the three */
};

#define RLMD_EXECUTION_OPTIONS_INIT RLMD_INIT(struct rlmd_execution_options)

/* The base and the plan are lent until it is freed. NULL and RLMD_ERROR_USAGE where one of the
 * three, or the orchestrator's start(), is missing, or a size is wrong. */
RLMD_API struct rlmd_execution *rlmd_execution_start(struct event_base *, const struct rlmd_plan *,
						     const struct rlmd_execution_options *,
						     struct rlmd_error *);

/* Cancels everything now. The callbacks get the results from the loop, as always. */
RLMD_API void rlmd_execution_stop(struct rlmd_execution *);

/* Cancels everything. No callback but cancel() comes. NULL is fine. */
RLMD_API void rlmd_execution_free(struct rlmd_execution *);

/* May be called at any time. Running operations go on as they began. 0 is the default, as above. A
 * new parallelism holds from the next turn of the loop on. */
RLMD_API void rlmd_execution_set_max_parallel(struct rlmd_execution *, size_t);
RLMD_API void rlmd_execution_set_timeout(struct rlmd_execution *, int64_t ms);
RLMD_API void rlmd_execution_set_partial_failure(struct rlmd_execution *, enum rlmd_plan_failure);

/* The number of operations that may run at once now; 0: the execution has not begun. */
RLMD_API size_t rlmd_execution_parallelism(const struct rlmd_execution *);

/* As far as it is known now; its texts are lent until the next call of the library for this
 * execution. False, and nothing is filled, if ret->size is unknown or there is no such index. */
RLMD_API bool rlmd_execution_result(const struct rlmd_execution *, size_t index,
				    struct rlmd_plan_result *ret);
RLMD_API bool rlmd_execution_summary(const struct rlmd_execution *, struct rlmd_plan_summary *ret);
RLMD_API const struct rlmd_plan *rlmd_execution_plan(const struct rlmd_execution *);

/* JSON. */

/* The file form of a plan, as docs/plans.md has it. The text is not needed any more afterwards. */
RLMD_API struct rlmd_plan_file *rlmd_plan_file_new(struct rlmd_text, struct rlmd_error *);
RLMD_API void rlmd_plan_file_free(struct rlmd_plan_file *); /* the plan, too; NULL is fine */
RLMD_API struct rlmd_plan *rlmd_plan_file_plan(const struct rlmd_plan_file *); /* lent */
RLMD_API const struct rlmd_plan_config *rlmd_plan_file_config(const struct rlmd_plan_file *);

/* One JSON object each, without a line feed; the caller frees it. An execution's has `results`,
 * `total`, `winner`, `cancelled`. */
RLMD_API char *rlmd_execution_json(const struct rlmd_execution *);
RLMD_API char *rlmd_plan_event_json(const struct rlmd_plan_event *);

#ifdef __cplusplus
}
#endif
