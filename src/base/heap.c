#include "base/heap.h"

#include <stdlib.h>

#include "base/alloc.h"

enum { ROOM_AT_FIRST = 16 };

void heap_done(struct heap *heap)
{
	free(heap->entries);
	*heap = (struct heap){.before = heap->before};
}

static void put(struct heap *heap, size_t index, struct heap_entry *entry)
{
	heap->entries[index] = entry;
	entry->index = index;
}

static void rise(struct heap *heap, size_t index, struct heap_entry *entry)
{
	while (index && heap->before(entry, heap->entries[(index - 1) / 2])) {
		put(heap, index, heap->entries[(index - 1) / 2]);
		index = (index - 1) / 2;
	}
	put(heap, index, entry);
}

static void sink(struct heap *heap, size_t index, struct heap_entry *entry)
{
	size_t child;

	while ((child = 2 * index + 1) < heap->count) {
		if (child + 1 < heap->count &&
		    heap->before(heap->entries[child + 1], heap->entries[child]))
			child++;
		if (!heap->before(heap->entries[child], entry))
			break;
		put(heap, index, heap->entries[child]);
		index = child;
	}
	put(heap, index, entry);
}

static void settle(struct heap *heap, size_t index, struct heap_entry *entry)
{
	if (index && heap->before(entry, heap->entries[(index - 1) / 2]))
		rise(heap, index, entry);
	else
		sink(heap, index, entry);
}

void heap_add(struct heap *heap, struct heap_entry *entry)
{
	if (heap->count == heap->room) {
		heap->room = heap->room ? 2 * heap->room : ROOM_AT_FIRST;
		heap->entries = xreallocarray(heap->entries, heap->room, sizeof *heap->entries);
	}
	rise(heap, heap->count++, entry);
}

void heap_remove(struct heap *heap, struct heap_entry *entry)
{
	struct heap_entry *last = heap->entries[--heap->count];

	if (last != entry)
		settle(heap, entry->index, last);
}

void heap_update(struct heap *heap, struct heap_entry *entry)
{
	settle(heap, entry->index, entry);
}

struct heap_entry *heap_first(const struct heap *heap)
{
	return heap->count ? heap->entries[0] : NULL;
}
