/*
 * engine/function_call.h - one call of a function of the host's, until it is answered.
 */
#pragma once

#include <event2/event.h>
#include <rlmd/function.h>

#include "base/error.h"
#include "base/text.h"

struct function;

/* Once. `json` is lent; empty where `err` is set. */
typedef void function_done_fn(void *owner, struct rlmd_text json, const struct rlmd_error *err);

/* `arguments` is JSON of an object, copied; the function outlives the call. Never calls back, nor
 * the host, before it returns. */
struct rlmd_function_call *function_call_start(struct event_base *, struct function *,
					       struct rlmd_text arguments, function_done_fn *,
					       void *owner);

/* The answer is not wanted any more; no callback follows. NULL is fine. */
void function_call_cancel(struct rlmd_function_call *);
