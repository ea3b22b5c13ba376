/*
 * engine/reserve.h - what a run keeps of its budget for the answer that is forced.
 *
 * Set aside when the run begins, and adjusted before each of its calls to what
 * that request may be billed by now: what is kept and then not needed, nobody
 * could use. docs/budget.md has the rule.
 */
#pragma once

#include <stdint.h>

#include "budget/budget.h"

struct scope;

/* Embed it; zero keeps nothing. */
struct reserve {
	const struct scope *scope; /* lent */
	struct budget *budget;     /* lent: of whom it is kept; NULL: of nobody, or not any more */
	const char *model;         /* lent: who will be asked */
	struct rlmd_amount had;    /* what there was when it was set aside */
	int64_t brief;             /* tokens that a short request is estimated at */
	int64_t whole;             /* likewise of one with the whole conversation; 0: unknown */
	struct reservation reservation;
};

void reserve_set(struct reserve *, const struct scope *, struct budget *, const char *model,
		 int64_t brief);
void reserve_adjust(struct reserve *);
void reserve_drop(struct reserve *); /* for good; idempotent */

/* Output that the request needs: such that an answer like those before it is not cut; and so much
 * at least that there is an answer at all. At most `most`, which stands where nothing is known. */
int64_t reserve_output(const struct scope *, const char *model, int64_t most);
