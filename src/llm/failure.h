/*
 * llm/failure.h - what a provider's error means, and what to do about it.
 *
 * The table of classes and phrases; pure. Sources: the error pages of the
 * providers and the retry rules of their official SDKs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct failure {
	enum error_kind kind;
	bool retry;            /* the same request may succeed later */
	unsigned quirk;        /* enum adapter_quirk: adapt by this and retry once; 0: none */
	int64_t context_limit; /* CONTEXT_OVERFLOW: the model's window where the text names it, or 0
				*/
	char message[256];     /* the provider's own words, escaped; never more than it sent */
};

/* An answer whose status is not 200. `body` may be anything: JSON of any provider, HTML, nothing.
 */
void failure_of_status(int status, struct text body, struct failure *ret);

/* An error object inside a stream or a body that came with status 200. */
void failure_of_body(struct text body, struct failure *ret);

/* Whether what failed so may succeed later; where nobody said it of this failure. */
bool failure_passes(enum error_kind kind);

/* What a person should look at, to follow the provider's words: "; check ...", or "". */
const char *failure_advice(enum error_kind kind);

/*
 * How long to wait before attempt `attempt` (1 is the first retry), in ms: the server's word
 * (retry-after-ms; Retry-After as seconds, as a duration like "6m0s" of x-ratelimit-reset-tokens,
 * or as HTTP date; NULL where absent) or the SDKs' back-off min(0.5 * 2^n, 8) s less up to a
 * quarter
 * (`jitter` in 0..1). -1: the server asks for longer than is honoured (two minutes): do not retry.
 * `x-should-retry` is decided by the caller before.
 */
int64_t failure_delay(int attempt, const char *retry_after_ms, const char *retry_after,
		      int64_t wall_ms, double jitter);
