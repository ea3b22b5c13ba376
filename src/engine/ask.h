/*
 * engine/ask.h - one model call, in its turn and paid for.
 *
 * Waits for a permit, reserves the most that the call should be billed as (with
 * max_tokens lowered to what the account affords, down to a floor), sends it,
 * settles to what was billed, counts it, learns from it and records it. What the
 * account, or one above the job, does not afford beside calls in flight waits for
 * them to end: where the purse is small, calls come one after the other. A retry
 * reserves again. Where the purse is scarce max_tokens is no more than what the model has been
 * producing makes likely (estimator_limit()). A reply that this has cut is asked for
 * once more, with all that the account affords; the caller sees one call that had
 * two attempts, or the cut reply where there is no second one to be had.
 * What was answered before (llm_recall()) is no part of that: nothing is reserved for it.
 * Cancelling settles too: what a closed transfer had cost is not forgotten, and
 * where nobody has told what that was, all that was reserved is spent.
 */
#pragma once

#include "budget/budget.h"
#include "engine/job.h"
#include "llm/llm.h"

enum {
	ASK_TOKENS_TURN = 8192, /* output asked for, where the purse affords it */
	ASK_TOKENS_QUERY = 8192,
	ASK_TOKENS_FORCED = 4096,
	ASK_TOKENS_FLOOR = 256, /* less is refused, but of a model whose replies are shorter */
};

struct ask;
struct caller;

/* It has its permit and is paid for: it is sent now. To be noted only; nothing may be freed. */
typedef void ask_sent_fn(void *owner);

struct ask_options {
	struct caller *caller; /* lent: who asks, pays and is warned */
	int number;            /* of the caller's; ASK_TURN: a turn, which its run records */
	const char *place;     /* of an operation (engine/caller.h), lent to ask_start(); or NULL */
	const char *reason;    /* lent, or NULL: why it stands in for a sub-run */
	ask_sent_fn *sent;     /* or NULL; with the owner of ask_start() */
	/* Its messages and model are lent until the callback. What it has of sampling goes before
	 * the settings' own; their limit on a reply holds for it too. */
	struct llm_request request;
};

enum { ASK_TURN = -1 };

/* `response` is lent and holds usage and cost also where `err` is set. */
typedef void ask_done_fn(void *owner, const struct llm_response *response,
			 const struct rlmd_error *err);

/* Never calls back before it returns. */
struct ask *ask_start(struct rlmd_job *, const struct ask_options *, ask_done_fn *, void *owner);

/* NULL is fine; no callback follows. Returns what it had used of the model, for good. */
struct llm_usage ask_cancel(struct ask *);

/* The least max_tokens that a call is made with: less, and its answer would be cut to nothing. */
int64_t ask_output_floor(const struct rlmd_job *, const char *model, enum llm_kind);
