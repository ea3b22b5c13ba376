/*
 * async/execution.h - what execution.c and dispatch.c share: a plan under way.
 *
 * dispatch.c is the story of one operation, execution.c what the end of one means for
 * the others, and who is told.
 */
#pragma once

#include <rlmd/plan.h>
#include <sys/queue.h>

#include "async/metrics.h"
#include "async/plan.h"

struct permit;
struct scheduler;
struct timer;

enum dispatch_state {
	DISPATCH_WAITING, /* for its dependencies */
	DISPATCH_LINED,   /* for a slot of the execution */
	DISPATCH_ASKED,   /* the orchestrator has it, and waits for something of its own */
	DISPATCH_RUNNING,
	DISPATCH_ENDED,
};

/* One operation on its way, which its orchestrator knows by this name; the plan has the operation
 * itself, at the same index. */
struct rlmd_call {
	struct rlmd_execution *execution; /* lent: it owns us */
	enum dispatch_state state;
	enum rlmd_plan_status status;
	enum rlmd_plan_error_kind error;
	const char *error_name; /* static */
	char *message;          /* owned: the error's, or NULL */
	uint32_t missing;       /* dependencies that have not ended */
	uint32_t holders;       /* dependents that may still want the response */
	int64_t tokens;
	bool estimated; /* of the tokens */
	int64_t lined;  /* clock_ms() since when it stands in line; 0: not yet */
	int64_t started, duration, timeout; /* ms */
	struct rlmd_text input_text; /* lent: what it works on, the operation's own or `input` */
	char *input;                 /* owned: with all substitutions, or NULL */
	char *response;              /* owned: kept for dependents or the caller, or NULL */
	size_t response_size;
	bool unlogged;                 /* its end is logged when its result is told */
	struct permit *permit;         /* owned */
	struct timer *timer;           /* owned */
	TAILQ_ENTRY(rlmd_call) entry;  /* in execution->asked or ->untold */
	SLIST_ENTRY(rlmd_call) fallen; /* in fail_dependents() */
};

struct rlmd_execution {
	const struct rlmd_plan *plan; /* lent */
	struct event_base *base;      /* lent */
	struct rlmd_plan_config config;
	struct rlmd_orchestrator orchestrator;
	struct rlmd_budget_manager budget;
	struct rlmd_execution_options options; /* without the three, which are above */
	struct rlmd_call *calls;               /* owned: as many as operations */
	struct scheduler *scheduler;           /* owned */
	struct event *tell; /* owned: active when somebody is to be told something */
	TAILQ_HEAD(asked, rlmd_call) asked; /* lent: in this order */
	TAILQ_HEAD(, rlmd_call) untold;     /* lent: ended, in this order */
	size_t limit;                       /* of what may run at once */
	size_t running, waiting, open; /* operations: now; asked for, and do not run; not ended */
	size_t inputs;                 /* bytes of the inputs under way with responses put in */
	int64_t started, changed;      /* when; when `running` or `limit` last did */
	bool deaf;                     /* cancelling: no answer counts meanwhile */
	bool quiet;                    /* nobody is told before a function has returned */
	bool begun;                    /* its start was told */
	bool resized;                  /* the limit is to be found anew */
	bool finished;                 /* all have ended */
	bool notified;                 /* on_done was called */
	char *message;                 /* owned: the summary's */
	struct rlmd_plan_metrics metrics;
	struct rlmd_plan_summary summary;
};

enum { DISPATCH_LABEL_MAX = RLMD_PLAN_ID_MAX + 3 };

static inline size_t dispatch_index(const struct rlmd_call *call)
{
	return (size_t)(call - call->execution->calls);
}

static inline const struct rlmd_operation *dispatch_operation(const struct rlmd_call *call)
{
	return &call->execution->plan->operations[dispatch_index(call)];
}

/* dispatch.c */

void dispatch_init(struct rlmd_call *, struct rlmd_execution *);
void dispatch_drop(struct rlmd_call *); /* cancels it, where it runs; nobody is told */

/* How an error names the operation. */
const char *dispatch_label(const struct rlmd_call *, char out[static DISPATCH_LABEL_MAX]);

struct rlmd_plan_result dispatch_result(const struct rlmd_call *);
void dispatch_line_up(struct rlmd_call *);

/* One dependency ended. */
void dispatch_release(struct rlmd_call *);

/* Ends it in any state. `message` is owned by the call from now on; NULL if it succeeded. */
void dispatch_end(struct rlmd_call *, enum rlmd_plan_status, enum rlmd_plan_error_kind,
		  char *message);
void dispatch_stop(struct rlmd_call *, const char *why);
void dispatch_put_back(struct rlmd_call *); /* asked for, it stands in line again */

/* It failed, and dependents are to find its error in place of a response. */
void dispatch_respond_with_error(struct rlmd_call *);

/* execution.c */

void execution_say(const struct rlmd_execution *, struct rlmd_plan_event);

void execution_log_end(const struct rlmd_execution *, const struct rlmd_plan_result *);

/* To be called before `running` or `limit` changes. */
void execution_pass_time(struct rlmd_execution *);

/* Lets as many run as the limit allows, and as there is memory for their inputs. */
void execution_open_slots(struct rlmd_execution *);

/* An operation ended of itself: what follows for the others. */
void execution_on_end(struct rlmd_call *);

/* As far as it is known now. */
struct rlmd_plan_summary execution_summary(const struct rlmd_execution *);

/* Tells one result now. The callback may free the execution. */
void execution_tell(struct rlmd_execution *, const struct rlmd_plan_result *);
