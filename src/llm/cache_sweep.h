/*
 * llm/cache_sweep.h - one look through a cache's directory, which leaves it within its size.
 *
 * First all entries are counted by how long nobody has used them; where they are too many bytes,
 * those that were not used for the longest go, in a second pass. Takes the same memory whatever
 * stands there, touches nothing that is no entry, and minds no other process that does the same.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SWEEP_TEMPORARY ".new-" /* what names of entries that are being written begin with */

struct sweep;

struct sweep *sweep_new(int dir, int64_t size); /* the descriptor stays the caller's */
bool sweep_step(struct sweep *);                /* a bounded part of it; true: it is done */
void sweep_free(struct sweep *);                /* NULL is fine */
