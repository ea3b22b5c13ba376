/*
 * llm/backoff.h - how long to wait before another attempt. Pure.
 */
#pragma once

#include <stdint.h>

/* More than any call's time: what a server asks for may be anything. */
#define BACKOFF_TOLD_MAX (INT64_C(366) * 24 * 3600 * 1000)

/*
 * How long to wait before attempt `attempt` (1 is the first retry), in ms: the server's word
 * (retry-after-ms; Retry-After as seconds, as a duration like "6m0s" of x-ratelimit-reset-tokens,
 * or as HTTP date; NULL where absent) or the SDKs' back-off min(0.5 * 2^n, 30) s less up to a
 * quarter (`jitter` in 0..1). `x-should-retry` is decided by the caller before.
 */
int64_t backoff_delay(int attempt, const char *retry_after_ms, const char *retry_after,
		      int64_t wall_ms, double jitter);
