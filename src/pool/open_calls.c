#include "pool/open_calls.h"

#include <assert.h>

#include "wire/frame.h"

static size_t find(const struct open_calls *open, int64_t id)
{
	size_t i = 0;

	while (i < open->count && open->calls[i].id != id)
		i++;
	return i;
}

bool open_calls_add(struct open_calls *open, int64_t id, size_t weight)
{
	assert(open->count < OPEN_CALLS_MAX);
	if (find(open, id) < open->count)
		return false;
	open->calls[open->count].id = id;
	open->calls[open->count++].weight = weight;
	open->weight += weight;
	return true;
}

bool open_calls_remove(struct open_calls *open, int64_t id)
{
	size_t index = find(open, id);

	if (index == open->count)
		return false;
	open->weight -= open->calls[index].weight;
	open->calls[index] = open->calls[--open->count];
	return true;
}

bool open_calls_full(const struct open_calls *open)
{
	return open->count == OPEN_CALLS_MAX || open->weight >= OPEN_CALLS_WEIGHT_MAX;
}

size_t open_calls_room(const struct open_calls *open)
{
	if (!open->count)
		return ATTACHED_MAX;
	return open->weight < OPEN_CALLS_WEIGHT_MAX ? OPEN_CALLS_WEIGHT_MAX - open->weight : 0;
}
