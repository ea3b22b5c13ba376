/*
 * batch/fund_private.h - the inside of a fund, for its two files.
 *
 * fund.c is its way with the store; fund_account.c, what jobs may do with it.
 */
#pragma once

#include "batch/fund.h"

struct event;
struct query;

enum fund_step {
	FUND_STEP_NONE,    /* there is no lease, and nothing is asked of the store */
	FUND_STEP_ACCOUNT, /* which account it is, is being asked */
	FUND_STEP_TAKE,    /* a lease is being taken */
	FUND_STEP_OPEN,    /* there is a lease */
	FUND_STEP_SETTLE,  /* it is being given back */
};

struct fund {
	struct fund_options options;
	struct rlmd_account *account; /* owned */
	struct query *query;          /* lent: the one operation at a time */
	struct event *posted;         /* owned: looks what is next */
	enum fund_step step;
	int64_t id, lease;        /* in the store; 0: not known, not there */
	struct rlmd_amount limit; /* of the store's account */
	struct rlmd_amount base, kept, queued, cover;
	struct rlmd_amount size, open, left; /* of the lease; what nobody holds besides */
	struct rlmd_amount peak,
		former_peak;       /* the most that had to be open since the last ticks */
	struct rlmd_amount wanted; /* to be open, since the store was asked last */
	struct rlmd_amount scant;  /* what there was when a job could not go on */
	enum rlmd_stop scarce;     /* of which it had too little */
	int64_t day_ends_ms,
		held_ms; /* on clock_ms(): the latter, when the store said what it is */
	int64_t former;  /* a lease of before, to be settled */
	struct rlmd_amount former_spent;
	size_t users, most_users; /* 0: as many as want to */
	bool limited, held;       /* what the lease has, is known */
	bool awaited;             /* somebody waits for that */
	bool others_hold;         /* something that may come back */
	bool exhausted;           /* nothing is left, and nobody will give anything back */
	bool idle, closing, dead;
};

/* Of a kind without a limit it is the last one. */
struct rlmd_amount fund_where_limited(const struct fund *, struct rlmd_amount, int64_t otherwise);

/* Through its account, since that was made; and what is reserved. */
struct rlmd_amount fund_spent(const struct fund *, struct rlmd_amount *ret_reserved);

/* Of this lease: what journals show, and what none does. */
struct rlmd_amount fund_spent_here(const struct fund *);

/* What has to be open for this to be at risk, from the account's beginning on. */
struct rlmd_amount fund_open_for(const struct fund *, struct rlmd_amount at_risk);

/* The account has what the fund has. */
void fund_set_cover(struct fund *);
void fund_set_limits(struct fund *);

/* From inside a call that is about to be sent, or was: so much would have to be covered. */
void fund_on_lack(void *owner, struct rlmd_amount needed);
