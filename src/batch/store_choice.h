/* batch/store_choice.h - which of the batches of a store is meant. */
#pragma once

#include <rlmd/rlmd.h>

struct store_batch;
struct store_result;

/* The one of that name of those that store_batches() told; without a name the only one. NULL and
 * RLMD_ERROR_USAGE: there is none, or one has to be named. Lent by the result. */
const struct store_batch *store_choice(const struct store_result *, const char *name,
				       struct rlmd_error *);
