/*
 * engine/subcall.h - the calls that a block makes, served while it waits.
 *
 * One sub-call is one call of the worker: a model call for each prompt, a
 * sub-run for each task, or a plan of both; a single question is a batch of one.
 * Here is what a call asks, as a plan, and what it is answered, in its order; one
 * operation that fails does not lose the others. How they are done is
 * engine/operation.h.
 */
#pragma once

#include <sys/queue.h>

struct caller;
struct subcall;
struct worker;
struct worker_call;

TAILQ_HEAD(subcall_list, subcall);

/* `call` is lent. The sub-call stands in the list until it was answered with worker_reply(). The
 * caller is a run, or the job of a session. */
void subcall_start(struct subcall_list *, struct caller *, struct worker *,
		   const struct worker_call *call);

/* The caller may go on: those whose sub-runs have ended are answered. */
void subcall_reply_all(struct subcall_list *);

/* Cancels what models were asked, of all; the worker hears that, from the loop. */
void subcall_stop_all(struct subcall_list *);

/* Cancels all: transfers are closed, sub-runs freed; nobody is answered. */
void subcall_free_all(struct subcall_list *);
