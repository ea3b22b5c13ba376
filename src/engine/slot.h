/*
 * engine/slot.h - one operation of a call, and what became of it.
 *
 * slot_start() and slot_cancel() are all that whoever orders the slots of a call
 * must know (engine/errand.h). It is where runs recurse: a slot starts a run,
 * and a run's blocks start slots.
 */
#pragma once

#include <rlmd/plan.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "engine/admission.h"
#include "llm/llm.h"

struct ask;
struct errand;
struct memfile;
struct run;

/* What code asks of the answers of a call; zero asks nothing. */
struct wishes {
	struct rlmd_text system; /* what the model is told first; empty: what we tell it */
	int64_t max_tokens;      /* 0: as usual */
	bool with_temperature;
	double temperature;
};

/* Zero, but for the errand, the operation and perhaps a context, wishes and earlier turns. */
struct slot {
	struct errand *errand;                  /* lent: outlives the slot */
	const struct rlmd_operation *operation; /* lent, likewise: what is to be done */
	struct rlmd_call *call;                 /* lent while it is under way: whom to tell */
	struct memfile *context;                /* referenced; NULL: the operation's, if any */
	struct rlmd_text input;                 /* lent while it is under way */
	const struct wishes *wishes;            /* lent likewise; NULL: none */
	const struct rlmd_text *earlier; /* lent likewise: the turns of a conversation before the
				       input, the user's and the model's */
	size_t earlier_count;            /* even */
	struct llm_message *messages;    /* owned: lent to the ask */
	char *user;                      /* owned: the user's last, where we had to write it */
	enum way way;
	char reason[ADMISSION_REASON_SIZE]; /* why that is no sub-run */
	bool wanting;                       /* it is a task that counts in the errand's admission */
	bool numbered;                      /* it has `number` among the calls of its caller */
	int number;
	char *degraded;        /* owned; NULL, or why the answer is less than what was asked for */
	struct ask *ask;       /* owned while it is under way */
	struct permit *permit; /* likewise: to compute, for the sub-run that waits to begin */
	struct run *child;     /* likewise */
	bool waiting;          /* the caller waits for our sub-run, which began or will */
	int64_t started;
	struct rlmd_plan_usage usage; /* of tokens */
	bool failed;
	enum rlmd_error_kind error; /* where it failed */
	char *value;                /* owned: the answer, or what went wrong */
	size_t value_size;
};

/* Ends with errand_on_slot(), once, which may come before this returns, as its last act. Says
 * rlmd_call_started() when its call is sent or its sub-run begins. */
void slot_start(struct slot *, struct rlmd_text input, struct rlmd_call *);

/* Closes the transfer, ends the sub-run; no callback follows. What had only waited may be started
 * again. */
void slot_cancel(struct slot *);
void slot_done(struct slot *); /* cancels too; idempotent */
