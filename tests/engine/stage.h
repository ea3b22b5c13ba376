/*
 * engine/stage.h - one question to an engine that stands on fakes, and its result.
 */
#pragma once

#include <event2/event.h>
#include <stdint.h>

#include "engine/job.h"

struct fixture {
	struct event_base *base;
	struct rlmd_engine *engine;
	struct rlmd_job *job;
	struct rlmd_context *context;
	json_t *result;
	int results;
};

enum { SMALL_PURSE = 12000 }; /* tokens that do not pay for four calls at once */

/* The options of a job that tests change, with zero meaning zero. */
struct stage_config {
	struct rlmd_limits limits;
	int64_t block_timeout_ms, max_output, max_parallel, downgrade, grace_ms;
	bool strict;
	struct rlmd_account *account; /* lent; NULL: none */
};

extern const struct stage_config usual;

/* The same as options, without work and hooks; `limits` is filled, and lent. */
struct rlmd_job_options stage_options(const struct stage_config *, struct rlmd_limits *limits);

/* Workers at once in the engines that begin() makes. */
enum { STAGE_WORKERS = 8 };
extern size_t stage_workers;

/* The context of the question, and of every sub-run; NULL: none. */
extern const char *stage_input;

/* Of the host's, that its code may call; NULL: none. */
extern const struct rlmd_function *stage_function;

/* An engine of its own on a base of ours, with a job. */
void begin(struct fixture *, const struct stage_config *);
void drive(struct fixture *); /* turns until the result, but not longer than a while */

/* Beside what is asserted here, rlmd_engine_free() asserts that nobody holds a permit or stands
 * in line for one; and budget_free(), that of no account anything is
 * reserved. */
void end(struct fixture *);

struct rlmd_text output(const struct fixture *);       /* the answer */
int64_t used(const struct fixture *, const char *key); /* a member of its usage */

/* A root that asks for two answers and two sub-runs, and sub-runs that end at once. */
const char *recursing(const struct llm_request *);
