/*
 * fake/outside.h - models and workers that answer from the event loop, for tests of the engine.
 *
 * Implements llm/llm.h and pool/worker.h at link time. What a model says is decided by the test;
 * a worker understands four blocks: "print", "ask" (two llm_query and two rlm_query slots, then
 * ends), "final" (FINAL("from code")), and "hang" (never ends).
 */
#pragma once

#include <stddef.h>

#include "llm/llm.h"

/* The model: the text of the answer to a request; NULL fails the call. */
extern const char *(*fake_model)(const struct llm_request *);

/* What is alive, and how many events happened; the loop is left after each (loopbreak). */
extern size_t fake_calls, fake_workers, fake_events;

/* The worker that makes its n-th event dies instead; 0: none does. */
extern size_t fake_death;
