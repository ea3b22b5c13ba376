/*
 * engine/plan_run.h - a plan whose operations are model calls and whole runs.
 *
 * The same rooms as a run's: one account for all operations, one line for model
 * calls, one trace. Which operation starts when is src/async's business
 * (rlmd/plan.h); here is what it does.
 */
#pragma once

#include <rlmd/plan.h>

#include "engine/engine.h"

/* `object` is what `rlmd plan` prints: report_execution()'s, with usage, warnings and sandbox. */
struct plan_run_result {
	enum rlmd_error_kind failure; /* RLMD_ERROR_NONE: success; RLMD_ERROR_CANCELLED: stopped */
	struct rlmd_error error;      /* why the plan as a whole did not succeed */
	const struct rlmd_plan_metrics *metrics; /* lent */
	json_t *object;                          /* lent */
};

typedef void plan_run_done_fn(void *owner, const struct plan_run_result *);

struct plan_run;

/*
 * The plan file is lent until plan_run_free(); the owners of its operations are set here. Sandbox
 * and llm are lent likewise. Events: those of docs/plans.md, and those of the runs in it.
 */
struct plan_run *plan_run_start(struct event_base *, struct sandbox *, struct llm *,
				const struct engine_config *, struct rlmd_plan_file *,
				engine_event_fn *, plan_run_done_fn *, void *owner);
void plan_run_stop(struct plan_run *); /* cancels all, and tells what there is, from the loop */
void plan_run_free(struct plan_run *); /* NULL is fine */

struct engine_status plan_run_status(const struct plan_run *);
