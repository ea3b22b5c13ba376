/* llm/replay_miss.h - where a request differs from the one that was recorded in its place. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "llm/llm.h"

enum { REPLAY_MISS_SIZE = 280 };

/* In words, for an error: the first thing that is another in `recorded`, the "request" of a
 * recording; "" where nothing is that can be told. Times of the clock are no difference. */
void replay_miss_explain(const struct llm_request *, const json_t *recorded,
			 char out[static REPLAY_MISS_SIZE]);
