/*
 * engine/caller.h - who makes calls: a run, or a plan that no run has ordered.
 *
 * All that a model call or a sub-run needs to know of whoever asked for it: who
 * pays, who is warned, and how the trace names it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

struct budget;
struct context;
struct llm_request;
struct reserve;
struct rlmd_job;
struct run;

enum { CALLER_ANSWERS_MAX = 64 << 20 }; /* bytes of the answers that a run waits for */

/* Embed it; caller_done() frees what it owns. */
struct caller {
	struct rlmd_job *job;          /* lent */
	struct caller *parent;         /* lent: is warned too; NULL: none */
	struct run *run;               /* lent; NULL: a plan, which needs no permit */
	const char *id;                /* lent: in the trace */
	struct log log;                /* the job's, with the id */
	struct budget *budget;         /* lent: pays */
	struct reserve *reserve;       /* lent: kept of it for a forced answer; NULL: nothing is */
	const struct context *context; /* lent: that of tasks without one of their own */
	const char *model;             /* lent: of calls that name none */
	int depth;                     /* runs that it starts are one deeper: of a plan -1 */
	int calls;                     /* and runs that it has asked for so far: their numbers */
	size_t answers, answers_max;   /* bytes of the answers that it has not taken yet */
	json_t *warnings;              /* owned array of strings */
};

void caller_done(struct caller *);

/*
 * The id of a run that `parent` has asked for, as the how manieth; NULL: the root. It is random,
 * unless exchanges are kept or replayed: then the same work has the same ids.
 */
void caller_name(const struct caller *parent, const struct rlmd_job *, int number,
		 char out[static 37]);

/* Likewise the place and the number of one of its requests, which lends `out`. */
enum { CALLER_PLACE_SIZE = 80 };
void caller_place(const struct caller *, int number, struct llm_request *,
		  char out[static CALLER_PLACE_SIZE]);

/* Of one of its calls, with its number as in the trace, or its turn (ASK_TURN). */
struct log caller_call_log(const struct caller *, int number, const struct llm_request *);

void caller_warn(struct caller *, const char *text);      /* in the result and in the trace */
void caller_warn_once(struct caller *, const char *text); /* likewise, and in all above it */
