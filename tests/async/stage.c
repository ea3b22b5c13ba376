#include "stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/timer.h"

static void happen(struct stage *stage)
{
	stage->events++;
	if (stage->on_event)
		stage->on_event(stage);
}

static void add_word(char **words, const char *word)
{
	char *longer = xasprintf("%s%s ", *words ? *words : "", word);

	free(*words);
	*words = longer;
}

static void finish(struct part *part)
{
	timer_free(part->timer);
	part->timer = NULL;
	if (part->running)
		part->stage->running--;
	part->running = false;
	part->waiting = false;
}

static void answer(struct part *part)
{
	const char *response = part->response ? part->response : part->id;
	char *foreign = xstrdup(part->fails ? part->fails : response);
	struct rlmd_plan_answer answer = {.size = sizeof answer, .tokens = part->tokens};

	if (part->fails) {
		answer.error = RLMD_PLAN_ERROR_OPERATION;
		answer.error_name = "throttled";
		answer.message = foreign;
	} else {
		answer.response = (struct rlmd_text){foreign, strlen(foreign)};
	}
	finish(part);
	part->ended = true;
	if (part->stage->price)
		part->stage->money -= part->tokens;
	rlmd_call_done(part->call, &answer);
	free(foreign);
}

static void on_time(void *owner)
{
	answer(owner);
}

/* Unless they are ignored, all that it needs has ended before it starts, or never will start. */
static void check_needs(struct stage *stage, const struct part *part)
{
	for (size_t i = 0; stage->ordered && i < STAGE_DEPENDENCIES_MAX && part->needs[i]; i++) {
		const struct part *need = stage_part(stage, part->needs[i]);
		size_t index = (size_t)(need - stage->parts);

		assert_int_equal(need->ended, need->starts);
		assert_int_not_equal(stage_result(stage, index).status, RLMD_PLAN_PENDING);
	}
}

/* Never more than may, also where fewer may than when it was asked for. */
static void set_going(struct part *part)
{
	struct stage *stage = part->stage;

	part->running = true;
	part->began = virtual_now;
	add_word(&stage->order, part->id);
	if (++stage->running > stage->most)
		stage->most = stage->running;
	assert_true(stage->running <= rlmd_execution_parallelism(stage->execution));
	if (part->at_once) {
		answer(part);
		return;
	}
	part->timer = timer_after(stage->base, part->ms, on_time, part);
	happen(stage);
}

static void on_place(void *owner)
{
	struct part *part = owner;

	finish(part);
	rlmd_call_started(part->call);
	set_going(part);
}

static void start(void *owner, const struct rlmd_operation *operation, struct rlmd_text input,
		  struct rlmd_call *call)
{
	struct stage *stage = owner;
	struct part *part = operation->owner;

	assert_false(stage->quiet);
	assert_int_equal(part->starts++, 0);
	assert_int_equal(part->results, 0);
	check_needs(stage, part);
	part->call = call;
	free(part->took);
	part->took = xstrndup(input.bytes, input.size);
	if (!stage->queues) {
		set_going(part);
		return;
	}
	part->waiting = true;
	part->timer = timer_after(stage->base, part->waits, part->refused ? on_time : on_place,
				  part);
	happen(stage);
}

static void cancel(void *owner, const struct rlmd_operation *operation, struct rlmd_call *call,
		   struct rlmd_plan_usage *ret_usage)
{
	struct stage *stage = owner;
	struct part *part = operation->owner;

	assert_ptr_equal(part->call, call);
	if (part->waiting) {
		finish(part);
		part->starts--;
		part->put_back++;
		return;
	}
	assert_true(part->running);
	assert_int_equal(part->cancels++, 0);
	finish(part);
	part->ended = true;
	if (stage->price)
		stage->money -= part->tokens;
	ret_usage->tokens = part->tokens;
	ret_usage->estimated = true;
	rlmd_call_done(call, &(struct rlmd_plan_answer){.size = sizeof(struct rlmd_plan_answer)});
}

static int64_t remaining(void *owner)
{
	const struct stage *stage = owner;

	assert_false(stage->quiet);
	return stage->money;
}

static int64_t estimate(void *owner)
{
	const struct stage *stage = owner;

	assert_false(stage->quiet);
	return stage->price;
}

static bool admit(void *owner, const struct rlmd_operation *operation, const char **ret_reason)
{
	struct stage *stage = owner;

	(void)operation;
	assert_false(stage->quiet);
	if (stage->money >= stage->admitted_from)
		return true;
	stage->refusals++;
	*ret_reason = "Token budget exhausted";
	return false;
}

static void on_result(void *owner, const struct rlmd_plan_result *result)
{
	struct stage *stage = owner;
	struct part *part = result->operation->owner;

	assert_false(stage->quiet);
	assert_int_equal(part->results++, 0);
	assert_int_equal(stage->dones, 0);
	assert_false(part->running || part->waiting);
	assert_ptr_equal(&stage->parts[result->index], part);
	stage->results++;
	part->told = virtual_now;
	part->result = *result;
	part->answer = xstrndup(result->response.bytes, result->response.size);
	part->message = xstrdup(result->message);
	if (stage->on_result)
		stage->on_result(stage, part);
	happen(stage);
}

static void on_done(void *owner, const struct rlmd_plan_summary *summary)
{
	struct stage *stage = owner;

	assert_false(stage->quiet);
	assert_int_equal(stage->results, stage->count);
	assert_int_equal(stage->dones++, 0);
	stage->summary = *summary;
	stage->metrics = *summary->metrics;
	stage->summary.metrics = &stage->metrics;
	stage->message = xstrdup(summary->message);
	happen(stage);
}

static void on_log(void *owner, const struct rlmd_plan_event *event)
{
	struct stage *stage = owner;
	char *line = rlmd_plan_event_json(event);

	assert_false(stage->quiet);
	assert_non_null(strstr(line, "\"event\":"));
	if (!strstr(line, "\"event\":\"operation_"))
		add_word(&stage->log, line);
	free(line);
}

void stage_open(struct stage *stage)
{
	*stage = (struct stage){.base = event_base_new()};
}

void stage_stop(struct stage *stage)
{
	stage->quiet = true;
	rlmd_execution_stop(stage->execution);
	stage->quiet = false;
}

void stage_set_max_parallel(struct stage *stage, size_t max_parallel)
{
	stage->quiet = true;
	rlmd_execution_set_max_parallel(stage->execution, max_parallel);
	stage->quiet = false;
}

void stage_drop(struct stage *stage)
{
	rlmd_execution_free(stage->execution);
	stage->execution = NULL;
}

void stage_close(struct stage *stage)
{
	stage_drop(stage);
	assert_int_equal(stage->running, 0);
	assert_false(virtual_step(stage->base));
	for (size_t i = 0; i < stage->count; i++) {
		free(stage->parts[i].took);
		free(stage->parts[i].answer);
		free(stage->parts[i].message);
	}
	free(stage->order);
	free(stage->log);
	free(stage->message);
	rlmd_plan_free(stage->plan);
	event_base_free(stage->base);
}

static void describe(struct stage *stage, size_t index)
{
	struct part *part = &stage->parts[index];
	size_t needs = 0;

	while (needs < STAGE_DEPENDENCIES_MAX && part->needs[needs])
		needs++;
	part->stage = stage;
	stage->operations[index] = (struct rlmd_operation){
		.size = sizeof(struct rlmd_operation),
		.id = part->id,
		.type = part->type,
		.input = {part->input, part->input ? strlen(part->input) : 0},
		.priority = part->priority,
		.timeout_ms = part->timeout,
		.depends_on = part->needs,
		.depends_count = needs,
		.owner = part,
	};
}

void stage_start(struct stage *stage, enum rlmd_plan_strategy strategy, struct part *parts,
		 size_t count, const struct rlmd_plan_config *config)
{
	const struct rlmd_plan_description description = {
		.size = sizeof description,
		.operations = stage->operations,
		.count = count,
		.strategy = strategy,
	};
	struct rlmd_plan_config sized = config ? *config : (struct rlmd_plan_config){0};
	const struct rlmd_orchestrator orchestrator = {sizeof orchestrator, start, cancel, stage,
						       stage->queues};
	const struct rlmd_budget_manager budget = {sizeof budget, remaining, estimate, admit,
						   stage};
	const struct rlmd_execution_options options = {
		.size = sizeof options,
		.config = config ? &sized : NULL,
		.orchestrator = &orchestrator,
		.budget = stage->price ? &budget : NULL,
		.keep = !stage->forgetful,
		.on_result = on_result,
		.on_log = on_log,
		.on_done = on_done,
		.owner = stage,
	};
	struct rlmd_error err = {0};

	stage->ordered = strategy == RLMD_PLAN_DEPENDENCY_AWARE || strategy == RLMD_PLAN_SEQUENTIAL;
	stage->parts = parts;
	stage->count = count;
	for (size_t i = 0; i < count; i++)
		describe(stage, i);
	stage->plan = rlmd_plan_new(&description, &err);
	if (!stage->plan)
		fail_msg("%s", err.text);
	sized.size = sizeof sized;
	stage->quiet = true;
	stage->execution = rlmd_execution_start(stage->base, stage->plan, &options, &err);
	stage->quiet = false;
	if (!stage->execution)
		fail_msg("%s", err.text);
}

struct rlmd_plan_result stage_result(const struct stage *stage, size_t index)
{
	struct rlmd_plan_result result = RLMD_PLAN_RESULT_INIT;

	assert_true(rlmd_execution_result(stage->execution, index, &result));
	return result;
}

struct rlmd_plan_summary stage_summary(const struct stage *stage)
{
	struct rlmd_plan_summary summary = RLMD_PLAN_SUMMARY_INIT;

	assert_true(rlmd_execution_summary(stage->execution, &summary));
	return summary;
}

void stage_run(struct stage *stage)
{
	while (virtual_step(stage->base))
		;
}

struct part *stage_part(struct stage *stage, const char *id)
{
	for (size_t i = 0; i < stage->count; i++)
		if (!strcmp(stage->parts[i].id, id))
			return &stage->parts[i];
	fail_msg("no part %s", id);
	return NULL;
}
