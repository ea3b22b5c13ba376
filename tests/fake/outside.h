/*
 * fake/outside.h - workers that answer from the event loop, for tests of the engine.
 *
 * Implements pool/worker.h at link time, beside fake/model.h. A worker
 * understands eight blocks: "print", "ask" (a call of two llm_query slots and one of two rlm_query
 * slots, then ends), "fan" (a call of eight rlm_query slots), "plan" (the rest of
 * the block as JSON, in a call of run_plan), "final" (FINAL("from code")), and
 * "function" (a call of lookup({"key": "x"})), "hang" (never ends),
 * "late" (calls llm_query where it is asked for its variables).
 */
#pragma once

#include <stddef.h>

#include "fake/model.h"

struct rlmd_sandbox;

extern struct rlmd_sandbox *const fake_outside_sandbox; /* for jobs: there is nothing in it */

extern size_t fake_workers, fake_workers_most; /* that are alive; and the most that were at once */

extern size_t fake_computing_most; /* that computed at once, and did not wait for calls */

/* The worker that makes its n-th event dies instead; 0: none does. */
extern size_t fake_death;

/* The slots of the last reply, each followed by "|"; one that failed begins with "!". */
extern const char *fake_missing; /* the module that each block lacks; NULL: none */
extern char fake_told[4096];
