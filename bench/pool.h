/* bench/pool.h - a sandbox and one live worker, driven from straight-line code. */
#pragma once

#include "pool/worker.h"

struct pool {
	struct event_base *base;      /* owned */
	struct rlmd_sandbox *sandbox; /* owned */
	struct worker *worker;        /* owned; NULL: none */
	enum worker_event_kind last;  /* of what came last, beside calls */
	bool answered;                /* `last` is news */
	struct memfile *context;  /* lent: of the workers that are started; NULL: they have none */
	worker_event_fn *on_call; /* hears of each call, or NULL */
	void *owner;              /* lent: its */
};

/*
 * Starts a template with the python and the worker directory of the command line,
 * and `without` as of struct sandbox_config.
 */
void pool_init(struct pool *, const char *python, const char *worker_dir, const char *without);
void pool_done(struct pool *);

/* Each returns when the worker has answered; a death ends the program. */
void pool_start_worker(struct pool *);
void pool_exec(struct pool *, const char *code);
void pool_stop_worker(struct pool *);

/* Lets the loop run for so long: for what happens in the background, like reaping. */
void pool_settle(struct pool *, int milliseconds);
