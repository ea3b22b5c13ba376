#include "engine/permits.h"

void permits_init(struct permits *permits, struct scheduler *calls, struct scheduler *workers)
{
	*permits = (struct permits){
		.calls = flow_new(scheduler_flow(calls), 1),
		.workers = flow_new(scheduler_flow(workers), 1),
	};
}

void permits_done(struct permits *permits)
{
	flow_free(permits->calls);
	flow_free(permits->workers);
	*permits = (struct permits){0};
}

struct permit *permits_ask_call(struct permits *permits, bool again, permit_fn *fn, void *owner)
{
	return permit_ask(permits->calls, again, fn, owner);
}

struct permit *permits_ask_worker(struct permits *permits, int depth, bool goes_on, permit_fn *fn,
				  void *owner)
{
	return permit_ask(permits->workers, 2 * depth + goes_on, fn, owner);
}
