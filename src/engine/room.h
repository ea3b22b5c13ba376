/*
 * engine/room.h - what all runs of one question, or of one plan, share.
 *
 * Plain data; whoever opens it owns it, and runs, sub-calls and asks are lent it.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "engine/engine.h"
#include "engine/estimators.h"
#include "prompt/brief.h"
#include "prompt/prompt_set.h"
#include "trace/trace.h"

struct ask;
struct semaphore;

TAILQ_HEAD(ask_list, ask);

enum { RUN_DEPTH_MAX = 64 }; /* no limit on depth may be set beyond it */

struct room {
	struct event_base *base;            /* lent */
	struct sandbox *sandbox;            /* lent */
	struct llm *llm;                    /* lent */
	const struct engine_config *config; /* lent */
	struct semaphore *calls;            /* owned: model calls at once */
	struct semaphore *workers;          /* owned: seats (engine/seat.h) */
	struct ask_list sent;               /* model calls that are under way; lent */
	struct ask_list waiting;            /* those that wait for what these give back; lent */
	struct estimators estimators;       /* what models were billed as */
	struct trace *trace;                /* owned */
	const char *model;                  /* of root turns, resolved */
	const char *subcall_model;          /* of everything below, resolved */
	const struct prompt_set *prompts;   /* lent: what the root is told */
	const struct prompt_set *subcall_prompts; /* likewise all below */
	bool overrun;                             /* it was warned of output beyond max_tokens */
	int calls_in_flight;
	int runs_alive[RUN_DEPTH_MAX]; /* by depth, for the status line */
	int64_t call_count, call_ms;   /* finished llm_query calls and their time, for prompts */
	int64_t subrun_count, subrun_ms, subrun_cost; /* likewise of sub-runs */
};

/* What is lent for good, and what follows from it; the rest is empty, and may be left so. */
void room_init(struct room *, struct event_base *, struct sandbox *, struct llm *,
	       const struct engine_config *);

/* Now runs may begin. Who listens gets each event of the trace; `tree` keeps them, too. */
void room_open(struct room *, bool tree, trace_fn *, void *owner);
void room_close(struct room *); /* all runs and asks must be gone */

const struct prompt_set *room_prompts(const struct room *, int depth); /* of a run there; lent */

struct brief_facts room_facts(const struct room *); /* lent as the room is */

int room_deepest(const struct room *); /* depth of a run that is alive; 0 where there is none */
