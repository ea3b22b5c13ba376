#include "engine/room.h"

#include "async/semaphore.h"
#include "engine/request.h"

void room_init(struct room *room, struct event_base *base, struct sandbox *sandbox, struct llm *llm,
	       const struct engine_config *config)
{
	*room = (struct room){
		.base = base,
		.sandbox = sandbox,
		.llm = llm,
		.config = config,
		.model = config->model ? config->model : llm_default_model(llm),
	};
	TAILQ_INIT(&room->sent);
	TAILQ_INIT(&room->waiting);
	room->subcall_model = config->subcall_model ? config->subcall_model : room->model;
	room->prompts = request_prompts(llm, config, room->model);
	room->subcall_prompts = request_prompts(llm, config, room->subcall_model);
}

void room_open(struct room *room, bool tree, trace_fn *fn, void *owner)
{
	room->calls = semaphore_new(room->base, (size_t)room->config->max_parallel);
	room->workers = semaphore_new(room->base, (size_t)room->config->max_workers);
	room->trace = trace_new(tree, fn, owner);
}

void room_close(struct room *room)
{
	semaphore_free(room->calls);
	semaphore_free(room->workers);
	estimators_done(&room->estimators);
	trace_free(room->trace);
}

const struct prompt_set *room_prompts(const struct room *room, int depth)
{
	return depth ? room->subcall_prompts : room->prompts;
}

struct brief_facts room_facts(const struct room *room)
{
	return (struct brief_facts){
		.llm = room->llm,
		.model = room->model,
		.subcall_model = room->subcall_model,
		.preload = room->config->preload,
		.max_output = room->config->max_output,
		.max_parallel = room->config->max_parallel,
		.downgrade = room->config->downgrade,
		.call_count = room->call_count,
		.call_ms = room->call_ms,
		.subrun_count = room->subrun_count,
		.subrun_ms = room->subrun_ms,
		.subrun_cost = room->subrun_cost,
	};
}

int room_deepest(const struct room *room)
{
	for (int depth = RUN_DEPTH_MAX - 1; depth > 0; depth--)
		if (room->runs_alive[depth])
			return depth;
	return 0;
}
