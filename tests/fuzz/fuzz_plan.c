/* A plan file, whatever it holds; one that is a plan is run, with answers at once. */
#include <assert.h>
#include <event2/event.h>
#include <rlmd/plan.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct crowd {
	size_t starts, results;
	bool done;
};

/* An empty input fails. */
static void start(void *owner, const struct rlmd_operation *operation, struct rlmd_text input,
		  struct rlmd_call *call)
{
	struct crowd *crowd = owner;
	struct rlmd_plan_answer answer = {.size = sizeof answer, .response = input, .tokens = 1};

	assert(operation->id);
	crowd->starts++;
	if (!input.size)
		answer.error = RLMD_PLAN_ERROR_OPERATION;
	rlmd_call_done(call, &answer);
}

static void on_result(void *owner, const struct rlmd_plan_result *result)
{
	struct crowd *crowd = owner;

	assert(result->status != RLMD_PLAN_PENDING);
	crowd->results++;
}

static void on_done(void *owner, const struct rlmd_plan_summary *summary)
{
	struct crowd *crowd = owner;

	assert(summary->succeeded + summary->failed + summary->cancelled == crowd->results);
	assert(summary->tokens == (int64_t)crowd->starts);
	crowd->done = true;
}

static void run(const struct rlmd_plan_file *file)
{
	struct crowd crowd = {0};
	struct rlmd_plan_config config = *rlmd_plan_file_config(file);
	const struct rlmd_orchestrator orchestrator = {
		.size = sizeof orchestrator,
		.start = start,
		.owner = &crowd,
	};
	const struct rlmd_execution_options options = {
		.size = sizeof options,
		.config = &config,
		.orchestrator = &orchestrator,
		.keep = true,
		.on_result = on_result,
		.on_done = on_done,
		.owner = &crowd,
	};
	const struct rlmd_plan *plan = rlmd_plan_file_plan(file);
	struct event_base *base = event_base_new();
	struct rlmd_execution *execution;

	config.timeout_ms = RLMD_PLAN_NO_TIMEOUT;
	config.input_max = 4096;
	execution = rlmd_execution_start(base, plan, &options, NULL);
	while (event_base_get_num_events(base, EVENT_BASE_COUNT_ACTIVE))
		event_base_loop(base, EVLOOP_NONBLOCK);
	assert(crowd.done && crowd.results == rlmd_plan_count(plan));
	free(rlmd_execution_json(execution));
	rlmd_execution_free(execution);
	event_base_free(base);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rlmd_text text = {(const char *)data, size};
	struct rlmd_error err = {0};
	struct rlmd_plan_file *file = rlmd_plan_file_new(text, &err);

	assert(!file == (err.kind == RLMD_ERROR_INPUT));
	if (!file) {
		assert(*err.text);
		return 0;
	}
	run(file);
	rlmd_plan_file_free(file);
	return 0;
}
