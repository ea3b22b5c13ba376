#include "engine/permits.h"

void permits_init(struct permits *permits, struct event_base *base,
		  const struct permits_options *options)
{
	size_t calls = options->max_calls < options->all_calls ? options->max_calls
							       : options->all_calls;

	*permits = (struct permits){
		.calls = flow_new(options->calls, options->weight),
		.workers = flow_new(options->workers, options->weight),
		.alive = scheduler_new(base, FLOW_UNLIMITED),
		.alive_max = options->all_workers + calls,
	};
	flow_set_limit(permits->calls, options->max_calls);
}

void permits_done(struct permits *permits)
{
	for (int depth = 0; depth < RUN_DEPTH_MAX; depth++)
		flow_free(permits->alive_at[depth]);
	scheduler_free(permits->alive);
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

struct permit *permits_ask_alive(struct permits *permits, int depth, permit_fn *fn, void *owner)
{
	struct flow **flow = &permits->alive_at[depth];

	if (!*flow) {
		*flow = flow_new(scheduler_flow(permits->alive), 1);
		flow_set_limit(*flow, permits->alive_max);
	}
	return permit_ask(*flow, 0, fn, owner);
}
