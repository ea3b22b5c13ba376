/*
 * A permit:
 *
 *   IN_LINE -> HELD       hold           it is its turn
 *   HELD -> RESTING       permit_rest    its holder only waits
 *   HELD -> IN_LINE       let_go         it is given back
 *   RESTING -> IN_LINE    let_go
 *
 * The words of the paper: a flow's start tag is the virtual time at which its next
 * permit begins, and each permit moves it on by 1/weight. The virtual time of the
 * flows below one is the start tag of the one that was served last, and a flow that
 * has something to ask for again begins there, if that is later than its own tag.
 * Served is the least tag; of equal ones whoever waits longest.
 *
 * One event stands for "somebody may start": it is made active whenever a permit
 * and whoever waits may have come together, and each time it runs it starts a few,
 * one after the other: as many as a turn of the loop has callbacks. Between two of
 * them it knows nothing but itself. So a callback may free any permit, change any limit
 * or free the scheduler, and nothing here ever recurses.
 */
#include "async/scheduler.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "async/rate.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/loop.h"
#include "base/timer.h"

enum { STARTS = 8 };

/* Virtual time that a permit takes at weight 1: 2^40 of them before it is over, and what a weight
 * loses by rounding is less than a thousandth of a thousandth for each of its permits. */
#define TURN (UINT64_C(1) << 24)
_Static_assert(TURN / FLOW_WEIGHT_MAX > 10000, "rounding is small beside a turn");

enum permit_state {
	IN_LINE,
	HELD,
	RESTING, /* held, as far as the flows but the topmost go */
};

struct permit {
	struct heap_entry entry; /* in flow->line while it waits */
	struct flow *flow;       /* lent */
	int priority;
	enum permit_state state;
	uint64_t number; /* the order in which they came */
	permit_fn *fn;
	void *owner; /* lent: fn's */
};

struct flow {
	struct heap_entry entry;     /* in above->ready, where it is ready itself */
	struct scheduler *scheduler; /* lent */
	struct flow *above;          /* lent; NULL: it is the scheduler's */
	unsigned weight;
	size_t limit, held;    /* permits, with those of the flows below */
	struct rate rate;      /* of them, too */
	struct timer *opens;   /* owned: until the rate allows another one; NULL: nobody waits */
	bool is_ready;         /* somebody waits and may start, as far as this flow goes */
	uint64_t start;        /* its start tag */
	uint64_t number;       /* the order in which flows became ready */
	struct heap line;      /* its own permits that wait */
	struct heap ready;     /* flows below it that are ready */
	uint64_t virtual_time; /* of the flows below it */
	size_t permits, flows; /* its own, and right below it: how many there are */
};

struct scheduler {
	bool starting;       /* it goes on after the callback: only then it is gone */
	struct event *start; /* owned: active when somebody may start */
	uint64_t numbers;    /* given out so far */
	struct flow *flow;   /* owned; NULL: it was freed by a callback */
};

static const struct permit *permit_in(const struct heap_entry *entry)
{
	return (const struct permit *)entry;
}

static const struct flow *flow_in(const struct heap_entry *entry)
{
	return (const struct flow *)entry;
}

static bool permit_before(const struct heap_entry *a, const struct heap_entry *b)
{
	if (permit_in(a)->priority != permit_in(b)->priority)
		return permit_in(a)->priority > permit_in(b)->priority;
	return permit_in(a)->number < permit_in(b)->number;
}

static bool flow_before(const struct heap_entry *a, const struct heap_entry *b)
{
	if (flow_in(a)->start != flow_in(b)->start)
		return flow_in(a)->start < flow_in(b)->start;
	return flow_in(a)->number < flow_in(b)->number;
}

static void join_ready(struct flow *flow)
{
	if (flow->start < flow->above->virtual_time)
		flow->start = flow->above->virtual_time;
	flow->number = flow->scheduler->numbers++;
	heap_add(&flow->above->ready, &flow->entry);
}

static void refresh(struct flow *flow);

static void on_opens(void *owner)
{
	struct flow *flow = owner;

	timer_free(take_pointer(&flow->opens));
	refresh(flow);
}

/* Where only its rate is in the way, it is looked at again when that is not. */
static bool rate_allows(struct flow *flow)
{
	int64_t now, at;

	if (!flow->rate.most)
		return true;
	now = clock_ms();
	at = rate_opens(&flow->rate, now);
	if (at > now && !flow->opens)
		flow->opens = timer_after(event_get_base(flow->scheduler->start), at - now,
					  on_opens, flow);
	return at <= now;
}

/* After any change of who waits or of what is held: up to the top, where it may start somebody. */
static void refresh(struct flow *flow)
{
	for (; flow; flow = flow->above) {
		bool waits = flow->line.count || flow->ready.count;
		bool is_ready = waits && flow->held < flow->limit && rate_allows(flow);

		if (flow->above && is_ready && !flow->is_ready)
			join_ready(flow);
		else if (flow->above && !is_ready && flow->is_ready)
			heap_remove(&flow->above->ready, &flow->entry);
		flow->is_ready = is_ready;
		if (!flow->above && is_ready)
			loop_post(flow->scheduler->start);
	}
}

static void hold(struct permit *permit)
{
	permit->state = HELD;
	for (struct flow *flow = permit->flow; flow; flow = flow->above) {
		flow->held++;
		if (flow->rate.most)
			rate_take(&flow->rate, clock_ms());
	}
}

static void let_go(struct permit *permit)
{
	for (struct flow *flow = permit->flow; flow; flow = flow->above)
		if (permit->state == HELD || flow->above)
			flow->held--;
	permit->state = IN_LINE;
}

/* The flow whose turn it is, of those right below a ready one; it is served by this. */
static struct flow *serve_next(struct flow *above)
{
	struct flow *next = (struct flow *)heap_first(&above->ready);

	above->virtual_time = next->start;
	next->start += TURN / next->weight;
	heap_update(&above->ready, &next->entry);
	return next;
}

static void start_next(struct flow *flow)
{
	struct permit *permit;

	while (flow->ready.count)
		flow = serve_next(flow);
	permit = (struct permit *)heap_first(&flow->line);
	heap_remove(&flow->line, &permit->entry);
	hold(permit);
	refresh(flow);
	permit->fn(permit->owner);
}

/* Whether the loop still runs and the scheduler was not freed. */
static bool may_go_on(const struct scheduler *scheduler)
{
	return scheduler->flow && scheduler->flow->is_ready &&
	       !event_base_got_break(event_get_base(scheduler->start));
}

static void on_start(evutil_socket_t fd, short what, void *owner)
{
	struct scheduler *scheduler = owner;

	(void)fd;
	(void)what;
	scheduler->starting = true;
	for (int i = 0; i < STARTS && may_go_on(scheduler); i++)
		start_next(scheduler->flow);
	scheduler->starting = false;
	if (!scheduler->flow)
		free(scheduler);
	else if (!scheduler->flow->is_ready)
		event_del(scheduler->start);
}

static struct flow *make_flow(struct scheduler *scheduler, struct flow *above, unsigned weight,
			      size_t limit)
{
	struct flow *flow = xcalloc(1, sizeof *flow);

	*flow = (struct flow){
		.scheduler = scheduler,
		.above = above,
		.weight = weight,
		.limit = limit,
		.line = {.before = permit_before},
		.ready = {.before = flow_before},
	};
	return flow;
}

struct scheduler *scheduler_new(struct event_base *base, size_t permits)
{
	struct scheduler *scheduler = xcalloc(1, sizeof *scheduler);

	scheduler->flow = make_flow(scheduler, NULL, 1, permits);
	scheduler->start = loop_event(base, -1, 0, on_start, scheduler);
	return scheduler;
}

static void drop_flow(struct flow *flow)
{
	assert(!flow->permits && !flow->flows);
	timer_free(flow->opens);
	heap_done(&flow->line);
	heap_done(&flow->ready);
	free(flow);
}

void scheduler_free(struct scheduler *scheduler)
{
	if (!scheduler)
		return;
	drop_flow(scheduler->flow);
	event_free(scheduler->start);
	scheduler->flow = NULL;
	if (!scheduler->starting)
		free(scheduler);
}

struct flow *scheduler_flow(struct scheduler *scheduler)
{
	return scheduler->flow;
}

struct flow *flow_new(struct flow *above, unsigned weight)
{
	assert(weight && weight <= FLOW_WEIGHT_MAX && !above->permits);
	above->flows++;
	return make_flow(above->scheduler, above, weight, FLOW_UNLIMITED);
}

void flow_free(struct flow *flow)
{
	if (!flow)
		return;
	flow->above->flows--;
	drop_flow(flow);
}

void flow_set_limit(struct flow *flow, size_t limit)
{
	flow->limit = limit;
	refresh(flow);
}

size_t flow_limit(const struct flow *flow)
{
	return flow->limit;
}

void flow_set_rate(struct flow *flow, int64_t most, int64_t window_ms)
{
	rate_init(&flow->rate, most, window_ms);
	timer_free(take_pointer(&flow->opens));
	refresh(flow);
}

static void get_in_line(struct permit *permit)
{
	heap_add(&permit->flow->line, &permit->entry);
	refresh(permit->flow);
}

struct permit *permit_ask(struct flow *flow, int priority, permit_fn *fn, void *owner)
{
	struct permit *permit = xcalloc(1, sizeof *permit);

	assert(!flow->flows);
	*permit = (struct permit){
		.flow = flow,
		.priority = priority,
		.number = flow->scheduler->numbers++,
		.fn = fn,
		.owner = owner,
	};
	flow->permits++;
	get_in_line(permit);
	return permit;
}

bool permit_held(const struct permit *permit)
{
	return permit && permit->state != IN_LINE;
}

void permit_rest(struct permit *permit)
{
	struct flow *top = permit->flow->scheduler->flow;

	assert(permit->state != IN_LINE);
	if (permit->state == RESTING || permit->flow == top)
		return;
	permit->state = RESTING;
	top->held--;
	refresh(top);
}

void permit_spare(struct permit *permit)
{
	assert(permit->state != IN_LINE);
	for (struct flow *flow = permit->flow; flow; flow = flow->above)
		if (flow->rate.most)
			rate_give_back(&flow->rate, clock_ms());
	refresh(permit->flow);
}

void permit_return(struct permit *permit)
{
	assert(permit->state != IN_LINE);
	let_go(permit);
	get_in_line(permit);
}

void permit_free(struct permit *permit)
{
	struct flow *flow;

	if (!permit)
		return;
	flow = permit->flow;
	if (permit->state != IN_LINE)
		let_go(permit);
	else
		heap_remove(&flow->line, &permit->entry);
	flow->permits--;
	free(permit);
	refresh(flow);
}
