/*
 * llm/call.h - one call of a model over the network, with all its attempts.
 *
 *   ADMIT -> SEND -> READ -> FINISH
 *     ^                |
 *     +---- retry -----+
 *
 * The gate says when an attempt may start, the adapter makes its body and reads the answer.
 */
#pragma once

#include "llm/provider.h"
#include "llm/request.h"

struct call;

/* The estimated tokens of the messages of a request. */
int64_t call_input_tokens(const struct llm_request *);

/* The request and the warnings are lent until the callback or call_cancel(). Its model is the
 * provider's own name for it, and never NULL. The response's texts are lent until call_free(),
 * which the callback may call. */
struct call *call_start(struct rlmd_provider *, const struct llm_request *, struct llm_warnings *,
			llm_retry_fn *, llm_wait_fn *, llm_done_fn *, void *owner);

/* After a rest: its request's on_rested() had said that it is not its turn yet. */
void call_go_on(struct call *);

/* Closes the transfer, frees the call. Gives its cost so far, estimated where not reported. */
void call_cancel(struct call *, struct llm_usage *ret_usage, int64_t *ret_cost);

/* After the callback. NULL is fine. */
void call_free(struct call *);
