/*
 * async/virtual.h - time that passes only when nothing else can happen.
 *
 * Implements base/timer.h, and what async needs of base/clock.h, at link time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct event_base;

extern int64_t virtual_now; /* ms */

/* Lets the loop do all there is to do, then time pass up to the next timer. False: there is none.
 */
bool virtual_step(struct event_base *);
