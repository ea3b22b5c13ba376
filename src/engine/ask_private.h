/*
 * engine/ask_private.h - the inside of an ask, for its two files.
 *
 * ask.c is its way: permit, call, what it was billed. ask_reserve.c says what an attempt may cost,
 * how much output is asked for, and whether there is money for it.
 */
#pragma once

#include "async/scheduler.h"
#include "budget/account.h"
#include "engine/ask.h"
#include "engine/caller.h"

struct ask {
	struct rlmd_job *job; /* lent */
	struct ask_options options;
	struct log log; /* its caller's, with its number and kind */
	char place[CALLER_PLACE_SIZE];
	struct permit *permit; /* owned: our place among the calls at once, or in line for it */
	struct ask_list *list; /* lent: the one of the job where we stand; NULL: none */
	TAILQ_ENTRY(ask) entry;
	struct account_waiter waiter; /* for what calls of other jobs give back */
	struct llm_call *call;        /* owned: once it was sent */
	struct charge charge;         /* the attempt that is under way */
	struct rlmd_amount flying;    /* the most that the call in flight may cost */
	struct rlmd_account *bare;    /* lent: whose cover does not reach for it yet; or NULL */
	struct rlmd_amount settled;   /* what the attempts before it were billed */
	bool is_short;                /* the account could not pay for it */
	int64_t wanted;               /* max_tokens, as asked for */
	bool call_sent;               /* at least once: it is recorded */
	bool cached;                  /* its answer was had before */
	int64_t call_started;         /* clock_ms() of the latest one */
	struct cut_reply *cut;        /* owned: the attempt that was lowered too far; or NULL */
	struct token_counts counts;   /* what the input is made of */
	int64_t input;                /* the most that they should be billed as */
	ask_done_fn *done;
	void *owner;
};

/* The most that an attempt should be billed as; false: there is no price for the model. */
bool ask_most(const struct ask *, int64_t max_tokens, struct rlmd_amount *ret);

/* Whether a call of that caller is in flight. */
bool ask_has_sent(const struct rlmd_job *, const struct caller *);

/* As much output as the model can give; with less than the floor even a small one is useless. */
int64_t ask_sensible(const struct ask *);

/* With less the call is refused: after a reply that was cut, any that would be cut likewise. */
int64_t ask_floor(const struct ask *, int64_t wanted);

/* Reserves the next attempt, with max_tokens as the account affords it; else `is_short` says
 * whether that was for want of money. */
bool ask_reserve(struct ask *, struct rlmd_error *);
