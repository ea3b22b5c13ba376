/*
 * engine/learning.h - what is learned of a model from the bill of a call.
 */
#pragma once

#include "budget/estimator.h"
#include "llm/llm.h"

struct caller;

/* `counts` is what the request's input was made of. Warns of a provider that does not keep to
 * max_tokens, once. */
void learning_take(struct caller *, const struct llm_request *, const struct token_counts *counts,
		   const struct llm_response *);
