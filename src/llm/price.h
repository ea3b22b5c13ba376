/*
 * llm/price.h - what tokens cost, in integer pico-dollars.
 *
 * Tables are in LiteLLM's JSON format (model_prices_and_context_window.json): the shipped
 * share/prices.json, and the user's over it. A model without a row has no price: never guessed.
 * A row without prices of caches is priced for the worst: what is read as the rest of the input,
 * what is written likewise, and by Anthropic as it bills that, 1.25 and (for an hour) 2 times.
 */
#pragma once

#include <rlmd/price.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "llm/request.h"

struct price {
	int64_t input, output;                           /* pico-dollars a token */
	int64_t cache_read, cache_write, cache_write_1h; /* likewise */
	int64_t context_window, max_output;              /* tokens, or 0 */
	int64_t long_prompt; /* an input of more tokens is billed at `beyond`; 0: never */
	struct price_beyond {
		int64_t input, output, cache_read, cache_write, cache_write_1h;
	} beyond;
};

/* The file is read whole; RLMD_ERROR_INPUT names it and the bad row. */
struct rlmd_price_table *price_table_read(const char *path, struct rlmd_error *);
struct rlmd_price_table *price_table_ref(struct rlmd_price_table *);

/* By the model's name as given, then as "provider/model", then without a date suffix. */
bool price_find(const struct rlmd_price_table *, const char *provider, const char *model,
		struct price *ret);

/* Of a host's options; RLMD_ERROR_USAGE for what is no price. */
bool price_take(const struct rlmd_price *, struct price *ret, struct rlmd_error *);

/* Cached and written tokens at their own prices, the rest of the input at the full one. */
int64_t price_cost(const struct price *, const struct llm_usage *);
