#include "pool/ledger.h"

#include <assert.h>

#include "wire/frame.h"

static size_t find(const struct ledger *ledger, int64_t id)
{
	size_t i = 0;

	while (i < ledger->count && ledger->calls[i].id != id)
		i++;
	return i;
}

bool ledger_add(struct ledger *ledger, int64_t id, size_t weight)
{
	assert(ledger->count < LEDGER_CALLS_MAX);
	if (find(ledger, id) < ledger->count)
		return false;
	ledger->calls[ledger->count].id = id;
	ledger->calls[ledger->count++].weight = weight;
	ledger->weight += weight;
	return true;
}

bool ledger_remove(struct ledger *ledger, int64_t id)
{
	size_t place = find(ledger, id);

	if (place == ledger->count)
		return false;
	ledger->weight -= ledger->calls[place].weight;
	ledger->calls[place] = ledger->calls[--ledger->count];
	return true;
}

bool ledger_full(const struct ledger *ledger)
{
	return ledger->count == LEDGER_CALLS_MAX || ledger->weight >= LEDGER_WEIGHT_MAX;
}

size_t ledger_room(const struct ledger *ledger)
{
	if (!ledger->count)
		return ATTACHED_MAX;
	return ledger->weight < LEDGER_WEIGHT_MAX ? LEDGER_WEIGHT_MAX - ledger->weight : 0;
}
