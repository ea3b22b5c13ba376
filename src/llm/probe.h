/*
 * llm/probe.h - whether a provider answers: one request that costs nothing.
 *
 * The provider lists its models, which needs the key but no model.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct rlmd_provider;

struct probe_result {
	const char *url; /* lent to the callback; NULL: there is none to ask */
	bool asked;      /* a request was made */
	int status;      /* of the answer; 0: none came */
	const struct rlmd_error
		*error; /* why nothing was asked, no answer came, or it was a refusal */
};

struct probe;

typedef void probe_done_fn(void *owner, const struct probe_result *);

/* Of a provider that no registry has; lent until the probe is gone. What is wrong with its key or
 * address is a result, too. Never calls back before it returns. */
struct probe *probe_start(struct event_base *, struct rlmd_provider *, int64_t timeout_ms,
			  probe_done_fn *, void *owner);
void probe_free(struct probe *); /* cancels; NULL is fine; may be called in the callback */
