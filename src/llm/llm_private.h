/*
 * llm/llm_private.h - the inside of a struct llm and of its calls, for its three files.
 *
 * llm.c asks and answers. llm_known.c has the answers for which nobody is asked. llm_price.c tells
 * what models cost, and how much they take.
 */
#pragma once

#include "llm/choice.h"
#include "llm/exchange.h"
#include "llm/journal.h"
#include "llm/llm.h"
#include "llm/recall.h"
#include "llm/recording.h"
#include "llm/replay_order.h"
#include "llm/warnings.h"

struct call;
struct rlmd_provider;

struct llm {
	struct event_base *base;     /* lent */
	struct choices choices;      /* owned */
	struct recording *recording; /* owned */
	struct recalls recalls;      /* owned */
	struct warnings warnings;    /* owned */
	char *model;                 /* owned: of calls that name none */
};

struct llm_call {
	struct llm *llm;                /* lent */
	struct rlmd_provider *provider; /* lent */
	struct llm_request request;     /* its names and messages are owned */
	char *name;                     /* owned: of its recording; NULL: none */
	int64_t started;
	llm_done_fn *fn;
	llm_retry_fn *may_retry; /* NULL: always */
	void *owner;             /* lent */

	struct call *call;   /* owned; NULL before it, in a replay, and where it is recalled */
	struct event *timer; /* owned: when such an answer comes; or a call that waits begins */
	struct exchange exchange; /* owned: the replayed answer, or the one that is being kept */
	struct replay_turn turn;  /* when that comes, among the others of its recording */
	int patience;             /* steps of it that are over */
	struct journal_waiter waiter; /* before it is sent */
	struct journal_keep *keep;    /* owned: of the answer, which waits for that; or NULL */
	struct llm_response response; /* likewise: of the exchange */
};

/* Whom a name means; empty: the model of calls that name none. */
struct choice llm_find(const struct llm *, const char *model);

/* llm.c: the answer is there, from wherever it came; once it is kept it is told. */
void llm_call_done(struct llm_call *, const struct llm_response *, const struct rlmd_error *);

/* llm_known.c: answers it from a replay, or from what was recalled; false: it is to be asked. */
bool llm_call_known(struct llm_call *);

/* llm_known.c: what such a call has used; false: it is none. */
bool llm_cancel_known(const struct llm_call *, struct llm_usage *, int64_t *ret_cost);
