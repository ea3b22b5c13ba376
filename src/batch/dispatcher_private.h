/* batch/dispatcher_private.h - the dispatcher, for its slots. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "batch/dispatcher.h"
#include "batch/headroom.h"
#include "batch/slot.h"
#include "batch/turns.h"
#include "store/store.h"

struct event;

/* Where the store says that a job is due, and has none to give, somebody holds it for a moment. */
enum { SOON_MS = 200 };

/* To look what others have done is to have all jobs counted: not as often as they end one, and a
 * fiftieth of the time at most. */
enum { LOOK_MS = 1000, LOOK_TIMES = 50 };

/* How often jobs are counted for those alone who watch: at least so long between, and so many times
 * what it takes. */
enum { RECOUNT_MS = 15000, RECOUNT_TIMES = 200 };

/* How often it is looked whether there is memory again. */
enum { ROOM_MS = 1000 };

struct dispatcher {
	struct dispatcher_options options;
	struct turns turns;
	struct purse *purse; /* owned */
	TAILQ_HEAD(, slot) slots;
	int64_t used;        /* slots */
	struct query *count; /* lent: what there is to do */
	struct query *renewal;
	struct store_claim *renewed; /* owned: what was asked for */
	struct event *wake, *renew;  /* owned */
	struct event *posted;        /* owned: looks what is to be done next */
	struct event *look;          /* owned: asks the store again, as others have written */
	int64_t looked_ms;           /* when it was asked last */
	int64_t look_took_ms;        /* how long that took */
	struct rlmd_error error;     /* why it ends before its time */
	bool looked;                 /* the store was asked since a job was begun or written last */
	bool dry;                    /* the last claim gave nothing */
	bool left;                   /* it said that there is something to wait for */
	int64_t ended, failed;       /* jobs that are over, of those that it began */
	struct headroom headroom;
	bool told_memory, told_busy;  /* why jobs are not begun */
	bool draining, closing, over; /* closing: money is given back */
};

/* It looks what is to be done next, from the loop. */
void dispatcher_proceed(struct dispatcher *);

/* The store does not do what it has to: all ends, and jobs wait for the next start. */
void dispatcher_fail(struct dispatcher *, const struct store_result *);

/* A job is over: there may be enough that failed. */
void dispatcher_note_end(struct dispatcher *, bool succeeded);
