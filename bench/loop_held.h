/* bench/loop_held.h - how long an event loop is held at once: the CPU time of this thread between
 * two of its turns, so that nobody else on the machine counts. */
#pragma once

struct event_base;
struct loop_held;

/* Looks from now on, in each turn of the loop. */
struct loop_held *loop_held_begin(struct event_base *);

/* The most, in milliseconds; frees. */
double loop_held_end(struct loop_held *);
