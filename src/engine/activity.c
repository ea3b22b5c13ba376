#include "engine/activity.h"

#include "base/clock.h"
#include "llm/request.h"

void activity_begin(struct activity_list *list, struct activity *activity)
{
	activity->since = clock_ms();
	TAILQ_INSERT_TAIL(list, activity, entry);
}

void activity_end(struct activity_list *list, struct activity *activity)
{
	TAILQ_REMOVE(list, activity, entry);
}

int activity_deepest(const struct activity_list *list)
{
	const struct activity *activity;
	int deepest = 0;

	TAILQ_FOREACH (activity, list, entry)
		if (!activity->request && activity->depth > deepest)
			deepest = activity->depth;
	return deepest;
}

int64_t activity_calls(const struct activity_list *list)
{
	const struct activity *activity;
	int64_t calls = 0;

	TAILQ_FOREACH (activity, list, entry)
		calls += activity->sent;
	return calls;
}

struct rlmd_activity activity_show(const struct activity *activity)
{
	const struct llm_request *request = activity->request;
	struct rlmd_activity shown = {
		.size = sizeof shown,
		.kind = RLMD_SUBCALL_RUN,
		.run = activity->run,
		.parent = activity->parent,
		.depth = activity->depth,
		.turn = activity->turn,
		.model = activity->model,
		.prompt = activity->task,
		.elapsed_ms = clock_ms() - activity->since,
	};

	if (!request)
		return shown;
	shown.kind = RLMD_SUBCALL_LLM;
	shown.call = request_model_kind(request);
	shown.model = request->model;
	shown.waits = !activity->sent;
	if (request->message_count)
		shown.prompt = request->messages[request->message_count - 1].text;
	return shown;
}
