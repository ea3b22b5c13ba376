/*
 * fake/clock.h - base/clock.h for tests whose time passes faster than ours.
 *
 * Link it before the base floor: what a module reads and what it waits for
 * shrink alike.
 */
#pragma once

#include <stdint.h>

void fake_clock_speed(int times); /* 1: as it is */

/* Milliseconds that were asked for with clock_timeval() last: of the timer that was set. */
int64_t fake_clock_asked(void);
