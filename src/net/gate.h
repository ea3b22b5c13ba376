/*
 * net/gate.h - when the next attempt at a provider may start, for all calls.
 *
 * One gate per provider and key. Whether and when one call tries again follows the official SDKs;
 * what they lack is shared here: a throttled call makes all others wait once, instead of each one
 * finding out for itself, and a refused key or an unpaid bill ends them all. Pure: it is told the
 * time and keeps no timers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct gate;

enum { GATE_BROKEN = 5 };

/*
 * A call is tried again `max_retries` times, if any, but GATE_BROKEN times with longer waits where
 * its answer broke off: servers that restart and proxies that reload cut streams for seconds. And
 * where the provider is busy, limits the rate or loads the model, as often as its own time allows,
 * but for `patience_ms` at most; 0: no more than after any other failure.
 */
struct gate *gate_new(int max_retries, int64_t patience_ms);
void gate_free(struct gate *); /* NULL is fine */

/*
 * May an attempt start? False with the error that broke the gate; else `ret_at` says when: ask
 * again then, unless it is not later than `now`. `jitter` in 0..1 spreads those who wait.
 */
bool gate_admit(struct gate *, int64_t now, double jitter, int64_t *ret_at, struct rlmd_error *);

/* No new work is to be begun before that time: it limits the rate, or was busy, and is asked again
 * then by who has work already. */
int64_t gate_busy_until(const struct gate *);

/* An attempt that failed. */
struct gate_failure {
	const struct rlmd_error *error; /* what it was; its http_status, 0 where none came */
	bool retry;                     /* as failure.h judged it */
	bool at_once;                   /* nobody is to be spared by a wait */
	bool broken;                    /* an answer had begun: what broke it off may take longer */
	const char *should_retry;       /* x-should-retry, or NULL; lent, as are the next two */
	const char *retry_after_ms, *retry_after;
	int attempt;      /* 1: the first of the call, or the first of those that were busy */
	bool busy;        /* the provider is, which may be over in minutes */
	int64_t waited;   /* since it was so first */
	int64_t started;  /* when the attempt was */
	int64_t deadline; /* of the call */
};

/*
 * Says whether the call may try again, not before `ret_at`. If not, `err` is the attempt's error,
 * with the reason why there will be no other. Remembers what concerns other calls.
 */
bool gate_retry(struct gate *, const struct gate_failure *, int64_t now, int64_t wall_now,
		double jitter, int64_t *ret_at, struct rlmd_error *err);

/* More than any call's time: what a server asks for may be anything. */
#define GATE_TOLD_MAX (INT64_C(366) * 24 * 3600 * 1000)

/*
 * How long to wait before attempt `attempt` (1 is the first retry), in ms: the server's word
 * (retry-after-ms; Retry-After as seconds, as a duration like "6m0s" of x-ratelimit-reset-tokens,
 * or as HTTP date; NULL where absent) or the SDKs' back-off min(0.5 * 2^n, 30) s less up to a
 * quarter (`jitter` in 0..1). `x-should-retry` is decided by the caller before.
 */
int64_t gate_delay(int attempt, const char *retry_after_ms, const char *retry_after,
		   int64_t wall_ms, double jitter);
