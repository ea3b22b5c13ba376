/* base/clock.h - time, in milliseconds everywhere but where a name says otherwise. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>

#include "base/error.h"

int64_t clock_ms(void);                   /* monotonic; only differences mean anything */
int64_t clock_us(void);                   /* the same in microseconds, for measuring */
int64_t clock_wall_ms(void);              /* since 1970, for people */
struct timeval clock_timeval(int64_t ms); /* for event_add; negative gives zero */

/* "90", "90s", "5m", "1.5h", "7d", "250ms"; a bare number means seconds. 10^15 ms at most. */
bool clock_parse_duration(const char *string, int64_t *ret_ms, struct rlmd_error *);

/* "850ms", "4.1s", "41s", "2m03s": for status lines. */
void clock_format(int64_t ms, char out[static 16]);

/* "2026-03-01T12:00:00.250Z" of clock_wall_ms(): RFC 3339, UTC. */
enum { CLOCK_DATE_SIZE = 32 };
void clock_format_date(int64_t wall_ms, char out[static CLOCK_DATE_SIZE]);
