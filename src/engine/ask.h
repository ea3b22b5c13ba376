/*
 * engine/ask.h - one model call, in its turn and paid for.
 *
 * Waits for a permit, reserves the most that the call should be billed as (with
 * max_tokens lowered to what the account affords, down to a floor), sends it,
 * settles to what was billed, counts it, learns from it and records it. A call that the account, or
 * one above the job, does not afford beside those in flight waits for them to end: where the budget
 * is small, calls come one after the other. A retry reserves again. Where the budget is scarce
 * max_tokens is no more than what the model has been producing makes likely (estimator_limit()). A
 * reply that this has cut is asked for once more, with all that the account affords; the caller
 * sees one call that had two attempts, or the cut reply where there is no second one to be had.
 * Answers that were had before (llm_look_up()) are no part of that: nothing is reserved for them.
 * Cancelling settles too: what a closed transfer had cost is not forgotten, and where nobody has
 * told what that was, all that was reserved is spent.
 */
#pragma once

#include "budget/budget.h"
#include "engine/scope.h"
#include "llm/llm.h"

struct ask;
struct caller;

/* It has its permit and is paid for: it is sent now. To be noted only; nothing may be freed. */
typedef void ask_sent_fn(void *owner);

struct ask_options {
	struct caller *caller; /* lent: who asks, pays and is warned */
	int number;            /* of the caller's; CALLER_TURN: a turn, which its run records */
	const char *position;  /* of an operation (engine/caller.h), lent to ask_start(); or NULL */
	const char *reason;    /* lent, or NULL: why it stands in for a sub-run */
	int64_t queued;        /* clock_ms() since when it is wanted; 0: now */
	ask_sent_fn *sent;     /* or NULL; with the owner of ask_start() */
	/* Its messages and model are lent until the callback. Its own sampling goes before that of
	 * the settings, whose limit on a reply holds for it too. */
	struct llm_request request;
};

/* `response` is lent and holds usage and cost also where `err` is set. */
typedef void ask_done_fn(void *owner, const struct llm_response *response,
			 const struct rlmd_error *err);

/* Never calls back before it returns. */
struct ask *ask_start(struct scope *, const struct ask_options *, ask_done_fn *, void *owner);

/* NULL is fine; no callback follows. Returns what it had used of the model, for good. */
struct llm_usage ask_cancel(struct ask *);

/* The least max_tokens that a call is made with: less, and its answer would be cut to nothing. */
int64_t ask_output_floor(const struct scope *, const char *model, enum llm_kind);

/*
 * Learns from the bill of a call: `counts` is what the request's input was made of. Warns of a
 * provider that does not keep to max_tokens, once.
 */
void ask_learn(struct caller *, const struct llm_request *, const struct token_counts *counts,
	       const struct llm_response *);
