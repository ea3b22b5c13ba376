/* loaded_store.h - a store of SQLite with batches, in a directory of its own, for tests. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/asking.h"

struct loaded_store {
	struct event_base *base;
	struct store *store;
	struct told told;
	char directory[32];
	char *place; /* owned: the store's */
};

void loaded_store_open(struct loaded_store *);
void loaded_store_close(struct loaded_store *);

/* A batch of the jobs a, b, ... of a tenant ("": nobody's), each with its id as its task; its id.
 */
int64_t loaded_store_add(struct loaded_store *, const char *name, const char *tenant, int jobs);

/* The next job of the batch ends with this result: with success, or with a failure of kind network.
 */
void loaded_store_end_job(struct loaded_store *, int64_t batch, bool succeeded, const char *result);

/* DO(&loaded, counts, batch): asks and waits; nothing may fail. */
#define DO(loaded, operation, ...)                                                                 \
	do {                                                                                       \
		ASK((loaded)->base, &(loaded)->told, store_##operation, (loaded)->store,           \
		    __VA_ARGS__);                                                                  \
		assert_string_equal((loaded)->told.error, "");                                     \
	} while (0)
