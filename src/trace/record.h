/*
 * trace/record.h - the events that a run's trace is made of.
 *
 * The names and members here are what docs/trace.md documents and
 * trace/tree.c puts together again.
 */
#pragma once

#include <rlmd/plan.h>

#include "base/answer.h"
#include "base/text.h"
#include "budget/budget.h"
#include "llm/request.h"
#include "pool/worker.h"
#include "source/context.h"
#include "trace/trace.h"

/* `parent` is NULL for the root. `prompt` is the profile's name. `sandbox` is taken, or NULL. */
void record_run(struct trace *, const char *run, const char *parent, int depth,
		struct rlmd_text task, const char *model, const char *prompt,
		const struct context *, json_t *sandbox);
void record_response(struct trace *, const char *run, int index, struct rlmd_text prompt,
		     const struct llm_response *, struct rlmd_text thinking);
void record_block(struct trace *, const char *run, int index, struct rlmd_text code,
		  const struct worker_block *, int64_t max_output);
/* The block that looks at the inputs before the first turn. */
void record_demonstration(struct trace *, const char *run, struct rlmd_text code,
			  const struct worker_block *, int64_t max_output);
void record_iteration(struct trace *, const char *run, int index);

/* A model call that was sent and ended, but for turns that were answered. `index` counts the run's
 * calls in the order they were made; CALLER_TURN stands for a turn. `reason` is why it stands in
 * for a sub-run, or NULL. */
void record_call(struct trace *, const char *run, int index, const char *reason,
		 const struct llm_request *, const struct llm_response *,
		 const struct rlmd_error *err);

/* A model call waits, for its provider is busy. `index` as above. */
void record_wait(struct trace *, const char *run, int index, const struct llm_request *,
		 const struct llm_wait *);

/* An answer that code was given is less than what it had asked for. */
void record_degraded(struct trace *, const char *run, bool task, const char *reason);

/* A call of a function of the host's has ended. All is lent. */
struct record_function {
	const char *name;
	struct rlmd_text arguments; /* JSON */
	struct rlmd_text answer;    /* JSON; or why there is none */
	enum rlmd_error_kind error; /* RLMD_ERROR_NONE: there is one */
	int64_t duration_ms;
};

void record_function(struct trace *, const char *run, const struct record_function *);

/* Of a plan that a block or the command line has ordered (docs/plans.md); `run` is whose. */
void record_plan(struct trace *, const char *run, const struct rlmd_plan_event *);

/* The first `turns` turns were replaced by their summary; tokens by our estimate. */
void record_compaction(struct trace *, const char *run, int index, int64_t turns, int64_t before,
		       int64_t after);
void record_warning(struct trace *, const char *run, const char *text);

/* How a run ended. All is lent. */
struct record_ending {
	struct rlmd_text answer;
	enum answer_source source;
	enum rlmd_stop stop;
	const struct rlmd_error *error; /* of kind RLMD_ERROR_NONE: there is an answer */
};

void record_end(struct trace *, const char *run, bool root, const struct record_ending *,
		const struct budget *);
