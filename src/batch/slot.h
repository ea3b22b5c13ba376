/*
 * batch/slot.h - a claim on a job: what is done with it, and what becomes of the job.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/text.h"
#include "store/store.h"

/* A claim on a job: asked for, at work, or being written. */
struct slot {
	TAILQ_ENTRY(slot) next;
	struct dispatcher *dispatcher;
	struct turn *turn;            /* lent */
	struct query *query;          /* lent: the claim, or what became of the job */
	struct store_claim claim;     /* job 0: it is not granted yet */
	struct job_journal *journal;  /* owned */
	struct work *work;            /* owned */
	struct scoreboard_job *shown; /* lent: what is seen of it; NULL: it is not granted yet */
	struct rlmd_text line;        /* owned until the work has it */
	struct purse_tenant *purse;   /* lent: who pays */
	struct rlmd_account *account; /* lent: likewise */
	int64_t attempts;
	bool succeeded;
	bool lost; /* somebody else has it: nothing is written */
};

/* What was claimed is begun; what becomes of it is written, and the slot is gone then. */
void slot_begin(struct slot *, const struct store_job *);

/* Its lease was over, and somebody else has the job: it is stopped, and nothing is written. */
void slot_lose(struct slot *);

/* Nothing more is written of it, and the dispatcher looks what is next. */
void slot_free(struct slot *);
