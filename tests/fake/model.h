/*
 * fake/model.h - a model that answers from the event loop, for tests of the engine.
 *
 * Implements llm/llm.h at link time. What it says is decided by the test;
 * a request whose last message begins with "hang" is never answered.
 */
#pragma once

#include <stddef.h>

#include "llm/llm.h"

struct rlmd_engine;

/* The text of the answer to a request; NULL fails the call, by that kind of error. */
extern const char *(*fake_model)(const struct llm_request *);
extern enum rlmd_error_kind fake_failure; /* RLMD_ERROR_OVERLOADED, unless the test says other */

/* The use that a call reports, in how many attempts; NULL: 10 tokens and 5. And as it says it:
 * 0 attempts, so that runs learn nothing for their conversations. */
extern struct llm_usage (*fake_usage)(const struct llm_request *);
extern int fake_attempts;

/* The max_tokens that replies are cut by, which a budget had lowered: each call is made again; 0:
 * by none. */
extern int64_t fake_lowered;

/* The bill of a first attempt at each call before it broke off, and how many calls may be made
 * again then: the others fail; no tokens: none breaks off. */
extern struct llm_usage fake_broken;
extern size_t fake_again;

/* While it is set, calls are answered only when that is said of the last one. */
extern bool fake_holds;
void fake_answer_held(void);

/* Calls that are alive, the most that were at once; and how many events happened: the loop is left
 * after each (loopbreak). */
extern size_t fake_calls, fake_calls_most, fake_events;

extern size_t fake_taken; /* answers whose bytes were taken, and not copied */

/* A provider "fake" for an engine, whose jobs ask the fake. */
void fake_provider(struct rlmd_engine *);
