/*
 * base/heap.h - a queue whose first is whoever comes before all others.
 *
 * A binary heap of entries that are embedded in what waits, so that each may leave
 * from its midst. A change takes at most 2 log2(count) + 1 comparisons.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Embed it as the first member; it must stay where it is while it is in a heap. */
struct heap_entry {
	size_t index;
};

/* A strict order of all that are in one heap at a time. */
typedef bool heap_before_fn(const struct heap_entry *, const struct heap_entry *);

/* Embed it; all zero but for `before` is empty. */
struct heap {
	heap_before_fn *before;
	struct heap_entry **entries; /* owned, what it points at is lent */
	size_t count, room;
};

void heap_done(struct heap *); /* idempotent */
void heap_add(struct heap *, struct heap_entry *);
void heap_remove(struct heap *, struct heap_entry *);
void heap_update(struct heap *, struct heap_entry *); /* what it is ordered by has changed */
struct heap_entry *heap_first(const struct heap *);   /* lent; NULL: there is none */
