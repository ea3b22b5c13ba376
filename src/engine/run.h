/*
 * engine/run.h - one run: a task, a worker, a conversation, an answer.
 *
 * The root run and every sub-run are the same thing at another depth. Freeing
 * a run cancels all below it: its model calls, its worker, its sub-runs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "engine/answer_check.h"
#include "source/context.h"

struct budget;
struct caller;
struct permit;
struct scope;
struct run;

/* The root has neither parent nor pool nor permits. */
struct run_options {
	struct caller *parent; /* lent, outlives the run: whose task it is */
	struct budget *pool;   /* lent, likewise: what its account is granted out of */
	int64_t among;         /* budget_new_child()'s */
	struct permit *alive;  /* held (engine/scope.h); the run's from now on */
	struct permit *permit; /* likewise: to compute */
	int depth;
	const char *position;          /* lent: of the task, among all that `parent` asks for */
	struct rlmd_text task;         /* copied */
	const struct context *context; /* lent during run_start(): its inputs are referenced */
	const char *model;             /* copied: of its turns; NULL: what its depth has */
	struct answer_form form;       /* that its answer has to have; the schema is lent */
};

/* Lent to the callback. */
struct run_result {
	enum rlmd_stop stop;
	struct rlmd_error error; /* RLMD_ERROR_NONE: there is an answer */
	struct rlmd_text answer; /* UTF-8; also beside an error, where there is one */
	bool forced, cut;        /* it was asked for before the run was done; it is not all of it */
};

typedef void run_done_fn(void *owner, const struct run_result *);

/* Never calls back before it returns. */
struct run *run_start(struct scope *, const struct run_options *, run_done_fn *, void *owner);

/* No new calls; what is in flight is cancelled, and an answer is asked for at once, to be there
 * before `deadline` (on clock_ms()). */
void run_interrupt(struct run *, int64_t deadline);

/* Ends all that costs something: calls, sub-runs, the worker. Their use is counted then, and only
 * run_free() may follow. */
void run_halt(struct run *);
void run_free(struct run *); /* NULL is fine; no callback follows */

/* Ends like that at once, with what `err` says; the callback comes before this returns. */
void run_stop(struct run *, const struct rlmd_error *err);

struct budget *run_budget(const struct run *);  /* lent */
const json_t *run_warnings(const struct run *); /* lent array of strings */
const char *run_asked(const struct run *); /* its last request's hash (llm/exchange.h), or "" */
int run_turn(const struct run *);          /* from 1; 0 before the first */

/* Its code waits for one call more, or one less: while it waits for any, the run has no permit to
 * compute (engine/scope.h). False: it is in line for one, and subcall_reply_all() comes when it may
 * hear the answer. */
void run_wait(struct run *);
bool run_wait_over(struct run *);
