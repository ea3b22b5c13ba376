/*
 * engine/caller.h - who makes calls: a run, a plan that no run has ordered, or a session.
 *
 * All that a model call or a sub-run needs to know of whoever asked for it: who
 * pays, who is warned, and how the trace names it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "base/text.h"
#include "engine/activity.h"

struct rlmd_error;
struct budget;
struct context;
struct llm_request;
struct reserve;
struct scope;
struct run;

enum { CALLER_TURN = -1 };              /* the number of a request that is a turn of a run */
enum { CALLER_ANSWERS_MAX = 64 << 20 }; /* bytes of the answers that a run waits for */
enum {
	CALLER_PATH_SIZE = 33,
	CALLER_KEY_SIZE = 40,
	CALLER_POSITION_SIZE = CALLER_PATH_SIZE + CALLER_KEY_SIZE + 40,
};

/* Embed it; caller_done() frees what it owns. */
struct caller {
	struct scope *scope;           /* lent */
	struct caller *parent;         /* lent: is warned too; NULL: none */
	struct run *run;               /* lent; NULL: a plan or a session, which need no permit */
	const char *id;                /* lent: in the trace */
	char path[CALLER_PATH_SIZE];   /* the same in each attempt at the work; empty: the root's */
	json_t *asked;                 /* owned: what it asked for -> how often; or NULL */
	struct log log;                /* the job's, with the id */
	struct budget *budget;         /* lent: pays */
	struct reserve *reserve;       /* lent: kept of it for a forced answer; NULL: nothing is */
	const struct context *context; /* lent: that of tasks without one of their own */
	const char *model;             /* lent: of calls that name none */
	bool late;                     /* no time is left for calls, but for the last answer */
	int depth;                     /* runs that it starts are one deeper: of a plan -1 */
	int calls;                     /* and runs that it has asked for so far: their numbers */
	size_t answers, answers_max;   /* bytes of the answers that it has not taken yet */
	json_t *warnings;              /* owned array of strings */
	struct activity activity;      /* a run's, from caller_begin() on */
};

/* A run is alive from here to caller_done(). `model` and `task` are lent so long. */
void caller_begin(struct caller *, const char *model, struct rlmd_text task);

void caller_done(struct caller *);

/*
 * Recordings, replays and journals know a caller and its requests by their positions, which are the
 * same whenever the same work is done. A position is made of the requests themselves and not of
 * their order, which differs where code has threads. All of them are empty unless somebody reads
 * them (llm_knows_positions()).
 *
 * The key of one call of code: a digest of the request, and how often this caller has made the same
 * one before.
 */
void caller_key(struct caller *, const struct rlmd_text *what, size_t count,
		char out[static CALLER_KEY_SIZE]);

/* The id of a run that `parent` has asked for at that position; NULL: the root. It is random,
 * unless exchanges are recorded or replayed: then the same work has the same ids. And its path. */
void caller_name(const struct caller *parent, const struct scope *, const char *position,
		 char out[static 37]);
void caller_set_path(struct caller *, const char *position);

/* The position of one of its requests, and its number as the trace has it. `position` is of an
 * operation; NULL: a turn, or the last answer. The request lends `out`. */
void caller_position(const struct caller *, const char *position, int number, struct llm_request *,
		     char out[static CALLER_POSITION_SIZE]);

/* Of one of its calls, with its number as in the trace, or its turn (CALLER_TURN). */
struct log caller_call_log(const struct caller *, int number, const struct llm_request *);

bool caller_is_late(struct rlmd_error *);            /* false: says why its calls are refused */
void caller_warn(struct caller *, const char *text); /* in the result and in the trace */
void caller_warn_once(struct caller *, const char *text); /* likewise, and in all above it */
