/*
 * pool/stage.h - a worker of the fake sandbox, and all that its owner hears of it.
 */
#pragma once

#include <event2/event.h>

#include "fake/sandbox.h"
#include "pool/worker.h"

enum { STAGE_EVENTS = 5 };

struct actor;
typedef void actor_call_fn(struct actor *, const struct worker_call *);

/* One worker and its owner. */
struct actor {
	struct stage *stage;
	struct worker *worker;   /* owned */
	int heard[STAGE_EVENTS]; /* events by kind */
	int unanswered, unanswered_max;
	struct rlmd_error error; /* of WORKER_GONE */
	enum worker_exit exit;
	bool interrupted, failed, found;
	int64_t duration_ms;
	enum answer_source final;
	char printed[64], problem[64], answer[64], value[64], variables[64];
	actor_call_fn *on_call; /* NULL: a call is left unanswered */
	int64_t timeout_ms;     /* of its blocks */
	int free_at;            /* frees the worker at that event; 0: never */
	int events;
};

struct stage {
	struct event_base *base;
	struct rlmd_sandbox *sandbox;
};

void stage_init(struct stage *);
void stage_done(struct stage *);

void actor_start(struct actor *, struct stage *, fake_script_fn *, const struct worker_options *);
void actor_done(struct actor *);

/* Lets the loop run until the actor heard of `kind` so many times; fails after 20 seconds. */
void actor_await(struct actor *, enum worker_event_kind kind, int times);
void actor_exec(struct actor *); /* a block, with timeout_ms */

void answer_all(struct actor *, const struct worker_call *); /* each result: its prompt */
