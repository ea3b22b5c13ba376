/*
 * llm/custom.h - requests to a provider of the host's own, which answers by rlmd/provider.h.
 *
 * It stands where a transfer over HTTP stands for the others: one request is one attempt of a call.
 */
#pragma once

#include <event2/event.h>
#include <rlmd/provider.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "llm/adapter.h"

struct custom_request;
struct rlmd_provider;

/* A provider's own part; embed it. Zero is a provider of a kind. */
struct custom {
	rlmd_model_ask_fn *ask;
	rlmd_model_cancel_fn *cancel; /* NULL: nobody cares */
	void *owner;                  /* lent */
	uint64_t last;                /* id that was given */
	struct custom_request **open; /* owned; the requests are lent; by id */
	size_t count;
};

void custom_done(struct custom *); /* requests must be gone; of a zeroed one too */

/*
 * The end, from the loop: `reply` has what came, `err` is NULL for an answer. `retry_after_ms` is
 * what the host wishes, or 0.
 */
typedef void custom_end_fn(void *owner, const struct rlmd_error *err, int64_t retry_after_ms);
/* More of it has come, from the loop. Must not free the request. */
typedef void custom_more_fn(void *owner);

/* Asks the host. Never calls back before it returns. The request is lent until the end; so is the
 * reply, which is filled. */
struct custom_request *custom_start(struct rlmd_provider *, const struct llm_request *,
				    struct reply *, custom_more_fn *, custom_end_fn *, void *owner);

/* Whether it may have cost something: whoever says that it failed says that it did not. */
bool custom_billed(const struct custom_request *);

/* The host hears of it, unless it has answered. NULL is fine. */
void custom_free(struct custom_request *);
