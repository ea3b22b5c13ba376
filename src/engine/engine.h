/*
 * engine/engine.h - one question, answered: the face of the engine.
 *
 * An engine brings together a sandbox, a model and the settings that all runs
 * of one question share. engine_start() starts the root run (engine/run.h);
 * everything comes back through two callbacks: events while it happens, and the
 * result, once.
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "budget/budget.h"
#include "llm/llm.h"
#include "sandbox/sandbox.h"
#include "source/context.h"

struct prompt_set;

struct engine_config {
	const char *model;         /* the root's; NULL: the provider's default. Lent for good. */
	const char *subcall_model; /* NULL: as `model`. Lent for good. */
	const struct prompt_set *prompts; /* what models are told; NULL: by model. Lent for good. */
	const char *const *preload; /* workers' modules, up to a NULL; or NULL. Lent for good. */
	struct budget_limits limits;
	int64_t block_timeout_ms;
	int64_t max_output; /* characters */
	int max_parallel;   /* model calls in flight at once */
	int max_workers;    /* workers that compute at once; those that wait for a sub-run don't */
	int downgrade;      /* per cent of a limit: with less left a sub-run is one call (ENG-14) */
	int64_t grace_ms;   /* for the forced answer after an interruption */
	bool strict;        /* a forced answer is a failure (RLMD_ERROR_BUDGET) */
	/* Of one reply, in tokens; 0: as usual (engine/ask.h). */
	int64_t max_output_tokens;
	/* Of all calls that bring none; its strings are lent for good. */
	struct llm_sampling sampling;
};

/* `object` is the result object of interface (success, output, trace, usage, warnings, ...). */
struct engine_result {
	enum rlmd_error_kind failure; /* RLMD_ERROR_NONE: success */
	struct rlmd_error error;      /* where it failed */
	struct rlmd_text
		output; /* the answer; may stand beside a failure (interrupted, --strict) */
	bool forced;
	json_t *object; /* lent */
};

/* One trace event as it happens, an object with "event", lent. The last is "result". */
typedef void engine_event_fn(void *owner, json_t *event);
typedef void engine_done_fn(void *owner, const struct engine_result *);

/* For the status line; counts the whole tree. */
struct engine_status {
	int turn;  /* of the root, from 1 */
	int depth; /* the deepest run that is alive */
	int calls_in_flight;
	int64_t tokens, cost, elapsed_ms;
	int64_t max_cost; /* BUDGET_UNLIMITED: none */
	bool interrupted;
};

struct engine;

/* `sandbox` and `llm` are lent and must outlive the engine. The context is lent during the call:
 * its inputs are referenced. */
struct engine *engine_start(struct event_base *, struct sandbox *, struct llm *,
			    const struct engine_config *, struct rlmd_text task,
			    const struct context *, engine_event_fn *, engine_done_fn *,
			    void *owner);
void engine_free(struct engine *); /* NULL is fine; cancels whatever is left */

/* No new calls, those in flight are cancelled, an answer is forced within the grace. */
void engine_interrupt(struct engine *);

struct engine_status engine_status(const struct engine *);

/* Ends at once, with no answer: what was used is counted, calls in flight by their estimate. The
 * result, whose error is `err`, comes before this returns. For an engine that has told none. */
void engine_stop(struct engine *, const struct rlmd_error *err);

/* What --dry-run shows: the first request, its token and worst-case cost estimate; new. */
json_t *engine_dry_run(struct llm *, const struct engine_config *, struct rlmd_text task,
		       const struct context *);
