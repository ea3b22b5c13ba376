/*
 * llm/backoff.h - how long to wait before another attempt. Pure.
 */
#pragma once

#include <stdint.h>

/*
 * How long to wait before attempt `attempt` (1 is the first retry), in ms: the server's word
 * (retry-after-ms; Retry-After as seconds, as a duration like "6m0s" of x-ratelimit-reset-tokens,
 * or as HTTP date; NULL where absent) or the SDKs' back-off min(0.5 * 2^n, 8) s less up to a
 * quarter
 * (`jitter` in 0..1). -1: the server asks for longer than is honoured (two minutes): do not retry.
 * `x-should-retry` is decided by the caller before.
 */
int64_t backoff_delay(int attempt, const char *retry_after_ms, const char *retry_after,
		      int64_t wall_ms, double jitter);
