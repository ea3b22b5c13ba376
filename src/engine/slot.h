/*
 * engine/slot.h - one prompt or task of a call, and what became of it.
 *
 * slot_start() and slot_cancel() are all that whoever orders the slots of a call
 * must know. It is where runs recurse: a slot starts a run, and a run's
 * blocks start slots.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "engine/grant.h"
#include "engine/seat.h"
#include "llm/llm.h"

struct ask;
struct memfile;
struct room;
struct run;
struct slot;

typedef void slot_done_fn(void *owner, struct slot *);

/* What the slots of one call share. */
struct errand {
	struct room *room;  /* lent */
	struct run *caller; /* lent */
	bool tasks;         /* for sub-runs; else prompts for a model */
	char *model;        /* owned; NULL: the one for sub-calls */
	struct grant grant; /* where they are tasks */
	slot_done_fn *done;
	void *owner;
};

struct slot {
	struct errand *errand; /* lent: outlives the slot */
	char *text;            /* owned: the prompt or the task */
	size_t size;
	struct memfile *context;        /* referenced; NULL: the caller's own */
	struct llm_message messages[2]; /* lent to the ask */
	char *user;                     /* owned: the second, where the slot had to write it */
	enum way way;
	const char *reason; /* lent: why that is no sub-run */
	bool forced, cut;   /* the answer is a guess, or not all of it */
	struct ask *ask;    /* owned while it is under way */
	struct seat seat;   /* likewise, of the sub-run that waits to begin */
	struct run *child;  /* likewise */
	bool waiting;       /* the caller waits for our sub-run, which began or will */
	int64_t started;
	bool failed;
	enum error_kind error; /* where it failed */
	char *value;           /* owned: the answer, or what went wrong */
	size_t value_size;
};

/* `context` is referenced; NULL where there is none. */
void slot_init(struct slot *, struct errand *, struct text, struct memfile *context);
void slot_done(struct slot *); /* cancels too */

/* Never calls back before it returns; errand->done comes once. */
void slot_start(struct slot *);
void slot_cancel(struct slot *); /* closes the transfer, ends the sub-run; no callback follows */
