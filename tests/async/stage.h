/*
 * async/stage.h - a plan with an orchestrator that does as it is told, in virtual time.
 *
 * A test writes down its parts, runs them, and looks at what became of each. The
 * stage itself watches over what holds for every plan: never more at once than
 * the execution allows, nobody before its dependencies, one start and one
 * result at most.
 */
#pragma once

#include <event2/event.h>
#include <rlmd/plan.h>

#include "async/metrics.h"
#include "virtual.h"

enum { STAGE_PARTS_MAX = 64, STAGE_DEPENDENCIES_MAX = 8 };

/* One operation: what it is, what it will do, and what became of it. */
struct part {
	/* for the plan; with zero it needs nothing, takes no time and succeeds */
	const char *id, *input;
	const char *needs[STAGE_DEPENDENCIES_MAX]; /* ends with NULL */
	int priority;
	int64_t timeout;
	enum rlmd_operation_type type;

	/* for the orchestrator */
	int64_t waits; /* ms in the orchestrator's line, where the stage queues */
	int64_t ms, tokens;
	const char *fails;    /* with this message */
	const char *response; /* NULL: "<id>" */
	bool at_once;         /* from inside start(), or as soon as it runs */
	bool refused;         /* answered while it still waits */

	/* what was seen */
	int starts, cancels, results; /* starts: without those that were put back */
	int put_back;                 /* or cancelled, while it waited */
	bool waiting, running, ended;
	int64_t began, told;            /* when it ran, or was answered unheard; when it was told */
	char *took;                     /* owned: the input that it got */
	char *answer;                   /* owned: the response of its result */
	char *message;                  /* owned */
	struct rlmd_plan_result result; /* its texts are gone */

	struct stage *stage;
	struct rlmd_call *call;
	struct timer *timer;
};

struct stage {
	struct event_base *base;
	struct rlmd_plan *plan;
	struct rlmd_execution *execution;
	struct rlmd_operation operations[STAGE_PARTS_MAX];
	struct part *parts; /* lent until stage_close() */
	size_t count;
	size_t running, most; /* at once: now; ever */
	char *order;          /* owned: the ids in the order in which they started, "a b c " */
	char *log;            /* owned: the names of events but for operation_start and _end */
	int dones, results, events;
	struct rlmd_plan_summary summary;
	struct rlmd_plan_metrics metrics; /* the summary's */
	char *message;                    /* owned: the summary's */
	int64_t money, price;  /* of the budget manager, where price is not 0; `tokens` are spent */
	int64_t admitted_from; /* a budget below this refuses everybody */
	int refusals;
	bool forgetful; /* the execution is not to keep responses */
	bool ordered;   /* dependencies are followed */
	bool queues;    /* the orchestrator: parts wait in its line before they run */
	bool quiet;     /* a function has not returned that calls nobody back before it does */

	void (*on_event)(struct stage *); /* at each start, result and end; may free all */
	void (*on_result)(struct stage *, struct part *);
};

void stage_open(struct stage *);
void stage_close(struct stage *);

/* Makes a plan of the parts and starts it. `options` may be NULL: the defaults. */
void stage_start(struct stage *, enum rlmd_plan_strategy, struct part *, size_t count,
		 const struct rlmd_plan_config *options);

/* Until nothing happens any more. */
void stage_run(struct stage *);

/* As the functions of their names, which call nobody back before they return, but cancel(). */
void stage_stop(struct stage *);
void stage_set_max_parallel(struct stage *, size_t);

/* As far as it is known now. */
struct rlmd_plan_result stage_result(const struct stage *, size_t index);
struct rlmd_plan_summary stage_summary(const struct stage *);

/* Frees the execution, as a callback may. */
void stage_drop(struct stage *);

struct part *stage_part(struct stage *, const char *id);
