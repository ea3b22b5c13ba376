/*
 * async/scheduler.h - so many at once, the rest in line: whose turn it is.
 *
 * A scheduler hands out permits of one resource (model calls in flight, workers
 * that compute) in the event loop. Each request belongs to a flow: a job, say, under the flow of
 * its tenant. Flows below the same one share by weight, each in its turn: while two of them wait,
 * neither gets more than its share of the permits and one besides. A flow that had nothing to ask
 * for, or was at its limit, has saved nothing up: it is next, and ahead by one turn at most. So a
 * job's only call waits for one permit to come free, and behind at most one turn of each other
 * flow, however many calls these have in line. Inside a flow the higher priority comes first, then
 * who came first.
 *
 * It is hierarchical start-time fair queueing (Goyal, Guo, Vin: A Hierarchical CPU
 * Scheduler for Multimedia Operating Systems, OSDI 1996), with as many served at
 * once as there are permits (Jin, Chase, Kaur: Interposed Proportional Sharing for
 * a Storage Service Utility, SIGMETRICS 2004). The number of permits is shared, and not their use.
 * Every change takes O(log n) steps for n in line on each level.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flow;
struct permit;
struct scheduler;

enum { FLOW_WEIGHT_MAX = 1000 };
#define FLOW_UNLIMITED SIZE_MAX

typedef void permit_fn(void *owner); /* a permit is yours until permit_free() */

struct scheduler *scheduler_new(struct event_base *, size_t permits);
void scheduler_free(
	struct scheduler *); /* all flows and permits must be gone (asserted); or NULL */

/* Lent: the flow above all others, whose limit is how many permits there are. */
struct flow *scheduler_flow(struct scheduler *);

/* A flow has permits of its own or flows below it, never both (asserted). Weight: 1 or more. */
struct flow *flow_new(struct flow *above, unsigned weight);
void flow_free(struct flow *); /* its flows and permits must be gone (asserted); NULL is fine */

/* So many permits of it and of the flows below it at once; those that are held are not taken back.
 */
void flow_set_limit(struct flow *, size_t limit);
size_t flow_limit(const struct flow *);

/* So many permits of it and of the flows below it are handed out in any stretch of time as long as
 * `window_ms`; 0: any number. Permits that were handed out before do not count. */
void flow_set_rate(struct flow *, int64_t most, int64_t window_ms);

/* Gets in line; the callback comes from the loop, once, never before this returns. */
struct permit *permit_ask(struct flow *, int priority, permit_fn *, void *owner);
bool permit_held(const struct permit *); /* also one that rests; false: it is in line, or NULL */

/*
 * Of a held one: whoever has it only waits now, and somebody else may have it meanwhile, of
 * another flow: it goes on counting towards the limits of its own flow and of those above it, all
 * but the scheduler's. permit_return() brings it back, permit_free() ends it.
 */
void permit_rest(struct permit *);

/* Nothing was done with a held one: it does not count towards the rates of flows. */
void permit_spare(struct permit *);

/* A held one is given back and asked for again, where it stood in line; the callback comes again.
 */
void permit_return(struct permit *);

/* Leaves the line, or gives the permit back; no callback follows. NULL is fine. */
void permit_free(struct permit *);
