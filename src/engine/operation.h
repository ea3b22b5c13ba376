/*
 * engine/operation.h - one operation under way: a model call, or a run one level down.
 *
 * src/async starts and cancels it by way of `operation_orchestrator`; it ends with
 * rlmd_call_done(). It is where runs recurse: an operation starts a run, and a run's
 * blocks start operations.
 */
#pragma once

#include <jansson.h>
#include <rlmd/plan.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "engine/admission.h"
#include "engine/caller.h"
#include "llm/request.h"

struct ask;
struct file_index;
struct memfile;
struct operation_form;
struct run;
struct worker_subset;

/* Settings that code gives a call; zero gives none. */
struct wishes {
	struct rlmd_text system; /* what the model is told first; empty: what we tell it */
	int64_t max_tokens;      /* 0: as usual */
	bool with_temperature;
	double temperature;
};

/* Zero, but for the set, the specification and perhaps a context, a scan, wishes and earlier turns.
 */
struct operation {
	struct operation_set *set;          /* lent: outlives the operation */
	const struct rlmd_operation *spec;  /* lent, likewise: what is to be done */
	struct rlmd_call *call;             /* lent while it is under way: whom to tell */
	struct memfile *context;            /* referenced; NULL: the specification's, if any */
	const struct worker_subset *subset; /* lent, likewise: which part of the caller's is its
					       context, from its start on; or NULL */
	struct file_index *files;           /* referenced: of that part; or NULL */
	struct rlmd_text input;             /* lent while it is under way */
	const struct text_scan *scan;       /* lent likewise: of the input; NULL: nobody made it */
	const struct wishes *wishes;        /* lent likewise; NULL: none */
	const struct rlmd_text *earlier;    /* lent likewise: the turns of a conversation before the
					  input, the user's and the model's */
	size_t earlier_count;               /* even */
	struct llm_message *messages;       /* owned: lent to the ask */
	size_t message_count;
	struct text_scan system;       /* of the first one, if that is short */
	struct token_counter *counter; /* owned: of those that nobody has counted; or NULL */
	enum llm_kind kind;            /* of the ask */
	char *user;                    /* owned: the user's last, where we had to write it */
	enum way way;
	char reason[ADMISSION_REASON_SIZE]; /* why that is no sub-run */
	bool wanting;                       /* it is a task that counts in the set's admission */
	int number;                         /* among all that its caller has asked for */
	char *degraded; /* owned; NULL, or why the answer is less than what was asked for */
	struct operation_form *form; /* owned: of a call whose answer has to satisfy a schema */
	struct ask *ask;             /* owned while it is under way */
	struct permit *alive;        /* likewise: for the sub-run that waits to begin */
	struct permit *permit;       /* likewise: to compute */
	struct run *child;           /* likewise */
	int64_t started;
	struct rlmd_plan_usage usage; /* of tokens */
	bool failed;
	enum rlmd_error_kind error; /* where it failed */
	char *value;                /* owned: the answer, or what went wrong */
	size_t value_size;
};

/*
 * Its operations' owners are struct operations. One has started when its call is sent or its
 * sub-run begins. Cancelling closes the transfer, or ends the sub-run; what had only waited may be
 * started again.
 */
extern const struct rlmd_orchestrator operation_orchestrator;

void operation_done(struct operation *); /* cancels; idempotent */

/*
 * The operations of one call or plan, ordered by src/async: a single question is a plan of one
 * operation. The set knows who pays for its operations and what they may cost; the execution
 * decides when each starts. Embed it. Zero may be freed.
 */
struct operation_set {
	struct caller *caller;     /* lent */
	char key[CALLER_KEY_SIZE]; /* of the call or plan */
	struct rlmd_plan *plan;    /* lent: the owners of its operations are ours */
	struct operation *all;     /* owned: one for each */
	size_t count, tasks;       /* operations; those that want a sub-run */
	struct admission admission;
	size_t answers;                   /* bytes so far, which count in the caller's */
	int64_t ended, tokens;            /* operations that had used some, and how many */
	struct rlmd_execution *execution; /* owned */
	bool keep;                      /* the execution keeps the answers, the operations do not */
	rlmd_plan_result_fn *on_result; /* may be NULL: the owner of the options' */
};

/* Its key, if it is to have one, is set before. */
void operation_set_init(struct operation_set *, struct caller *, struct rlmd_plan *);

/*
 * Orchestrator and budget manager of the options are set here, the configuration is the second
 * argument; as many run at once as calls of the job where it says nothing. Never calls back before
 * it returns.
 */
void operation_set_start(struct operation_set *, const struct rlmd_plan_config *,
			 const struct rlmd_execution_options *);

/* The whole as JSON (docs/plans.md), new: with why an answer is less than what was asked for. */
json_t *operation_set_report(const struct operation_set *);

/* Those that have not ended fail as cancelled. The execution tells its end from the loop. */
void operation_set_stop(struct operation_set *);

/* All have ended: what was set aside for them returns. */
void operation_set_settle(struct operation_set *);
void operation_set_done(struct operation_set *); /* cancels; nobody is told */
