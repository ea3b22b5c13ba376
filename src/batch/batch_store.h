/* batch/batch_store.h - what users of a store are told of it, and which of its batches is meant. */
#pragma once

#include <rlmd/rlmd.h>

#include "store/store.h"

/* Why an operation failed. RLMD_ERROR_USAGE where the user has to mend something, RLMD_ERROR_INPUT
 * where the store is not there or damaged, RLMD_ERROR_INTERNAL otherwise. */
void batch_store_explain(const struct store_result *, struct rlmd_error *);

/* A store's news for its user; static; NULL: none. */
const char *batch_store_news(enum store_news);

/* The one of that name of those that store_batches() told; without a name the only one. NULL and
 * RLMD_ERROR_USAGE: there is none, or one has to be named. Lent by the result. */
const struct store_batch *batch_store_choose(const struct store_result *, const char *name,
					     struct rlmd_error *);
