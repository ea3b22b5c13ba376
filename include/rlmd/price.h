/*
 * rlmd/price.h - prices of models' tokens, in whole pico-dollars (10^-12 dollars).
 *
 * Tables are in the JSON format of LiteLLM (model_prices_and_context_window.json). A model without
 * a row has no price; none is guessed. Tables are read-only.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rlmd_price_table;

/* `path` NULL: the table that comes with the library. Returns one reference, or NULL and
 * RLMD_ERROR_INPUT, which names the file and the row. */
RLMD_API struct rlmd_price_table *rlmd_price_table_open(const char *path, struct rlmd_error *);
RLMD_API void rlmd_price_table_unref(struct rlmd_price_table *); /* NULL is fine */

/* "2026-11-01", or "unknown", also of NULL. Lent. */
RLMD_API const char *rlmd_price_table_date(const struct rlmd_price_table *);

struct rlmd_price {
	size_t size;
	int64_t input, output;  /* pico-dollars a token */
	int64_t cache_read;     /* pico-dollars a token of input that came from a cache */
	int64_t cache_write;    /* ... of input that was written to a cache for minutes */
	int64_t cache_write_1h; /* ... of input that was written to a cache for an hour */
	int64_t long_prompt;    /* tokens of input above which prices are higher; 0: never */
	int64_t context_window; /* tokens of input; 0: unknown */
	int64_t max_output;     /* tokens; 0: unknown */
};

#define RLMD_PRICE_INIT RLMD_INIT(struct rlmd_price)

/* The row of a model: by its name, by "provider/model", then without a date at its end. False:
 * there is none, or an argument is NULL, or `ret` has no size. */
RLMD_API bool rlmd_price_find(const struct rlmd_price_table *, const char *provider,
			      const char *model, struct rlmd_price *ret);

struct rlmd_tokens {
	size_t size;
	int64_t input; /* all of the prompt */
	int64_t output;
	int64_t cache_read, cache_write, cache_write_1h; /* of the input */
};

#define RLMD_TOKENS_INIT RLMD_INIT(struct rlmd_tokens)

/* The cost of the tokens, INT64_MAX at most. False and 0: as rlmd_price_find(), or a count is not
 * between 0 and 10^15. */
RLMD_API bool rlmd_price_cost(const struct rlmd_price_table *, const char *provider,
			      const char *model, const struct rlmd_tokens *, int64_t *ret_cost);

#ifdef __cplusplus
}
#endif
