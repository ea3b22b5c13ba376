/* Calls of a job to its owner, and the owner's own from inside of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "engine/stage.h"
#include "fake/outside.h"

enum act { LOOK, INTERRUPT, CANCEL, FREE, START };

enum hook { ITERATION, CODE, OUTPUT, SUBCALL, DELTA, EVENT, END, HOOKS };

struct watch {
	struct rlmd_engine *engine;
	struct rlmd_job *job, *other;
	enum act act;
	enum hook at; /* where, the first time */
	bool acted, returned;
	int count[HOOKS], after; /* hooks; those of a job that was freed */
	int events_after_end;
	int64_t turns, calls, runs;
	char ended[32];
};

static const struct rlmd_hooks *hooks_of(struct watch *);

static struct rlmd_job *start(struct watch *watch)
{
	struct rlmd_limits limits;
	struct rlmd_job_options options = stage_options(&usual, &limits);

	options.task = text_of("the task");
	options.hooks = hooks_of(watch);
	return rlmd_job_start(watch->engine, &options, NULL);
}

static void act(struct watch *watch, enum hook hook, struct rlmd_job *job)
{
	assert_true(watch->returned); /* nothing is told before rlmd_job_start() returned */
	watch->count[hook]++;
	watch->after += watch->acted && watch->act == FREE && job == watch->job;
	if (watch->acted || watch->at != hook)
		return;
	watch->acted = true;
	switch (watch->act) {
	case LOOK:
		return;
	case INTERRUPT:
		rlmd_job_interrupt(job);
		return;
	case CANCEL:
		rlmd_job_cancel(job);
		return;
	case FREE:
		rlmd_job_free(job);
		return;
	case START:
		watch->returned = false;
		watch->other = start(watch);
		watch->returned = true;
		return;
	}
}

static void on_iteration(void *owner, struct rlmd_job *job, const struct rlmd_iteration *iteration)
{
	struct watch *watch = owner;

	assert_int_equal(iteration->size, sizeof *iteration);
	if (!iteration->depth && job == watch->job)
		assert_int_equal(iteration->number, ++watch->turns);
	assert_int_equal(strlen(iteration->run), 36);
	assert_true(iteration->response.size);
	act(watch, ITERATION, job);
}

static void on_code(void *owner, struct rlmd_job *job, const struct rlmd_code *code)
{
	assert_true(code->code.size);
	act(owner, CODE, job);
}

static void on_output(void *owner, struct rlmd_job *job, const struct rlmd_output *output)
{
	assert_true(output->code.size);
	act(owner, OUTPUT, job);
}

static void on_subcall(void *owner, struct rlmd_job *job, const struct rlmd_subcall *subcall)
{
	struct watch *watch = owner;

	watch->calls += subcall->kind == RLMD_SUBCALL_LLM;
	watch->runs += subcall->kind == RLMD_SUBCALL_RUN;
	if (subcall->kind == RLMD_SUBCALL_RUN)
		assert_int_equal(subcall->depth, 1);
	act(watch, SUBCALL, job);
}

static void on_event(void *owner, struct rlmd_job *job, struct rlmd_text json)
{
	struct watch *watch = owner;
	json_t *event = json_loadb(json.bytes, json.size, JSON_ALLOW_NUL, NULL);

	assert_non_null(event);
	assert_true(json_get_text(event, "event").size);
	json_decref(event);
	watch->events_after_end += watch->count[END] && job == watch->job;
	act(watch, EVENT, job);
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	struct watch *watch = owner;
	const struct rlmd_error *error = rlmd_result_error(result);

	if (job == watch->job)
		snprintf(watch->ended, sizeof watch->ended, "%s",
			 error ? rlmd_error_name(error->kind)
			       : rlmd_stop_name(rlmd_result_stop(result)));
	act(watch, END, job);
}

static const struct rlmd_hooks *hooks_of(struct watch *watch)
{
	static struct rlmd_hooks hooks;

	hooks = (struct rlmd_hooks){
		.size = sizeof hooks,
		.iteration = on_iteration,
		.code = on_code,
		.output = on_output,
		.subcall = on_subcall,
		.event = on_event,
		.end = on_end,
		.owner = watch,
	};
	return &hooks;
}

static void open_watch(struct watch *watch, enum act what, enum hook at)
{
	const struct rlmd_engine_options options = {.size = sizeof options};

	*watch = (struct watch){.act = what, .at = at};
	fake_model = recursing;
	fake_death = 0;
	watch->engine = rlmd_engine_new(&options, NULL);
	fake_provider(watch->engine);
	watch->job = start(watch);
	assert_non_null(watch->job);
	watch->returned = true;
}

/* The fake model leaves the loop after each event. */
static void play(struct watch *watch)
{
	struct rlmd_error err = {0};

	while (!rlmd_engine_wait(watch->engine, NULL, &err))
		assert_int_equal(err.kind, RLMD_ERROR_CANCELLED);
}

static void close_watch(struct watch *watch)
{
	rlmd_engine_free(watch->engine);
	assert_int_equal(fake_calls, 0);
	assert_int_equal(fake_workers, 0);
}

/* LIB-4: each hook comes for what it is said to come for, and the end once and last. */
static void test_all_are_told(void **state)
{
	struct rlmd_usage usage = {.size = sizeof usage};
	const struct rlmd_result *result;
	struct watch watch;

	(void)state;
	open_watch(&watch, LOOK, END);
	assert_null(rlmd_job_result(watch.job));
	play(&watch);
	result = rlmd_job_result(watch.job);
	assert_true(rlmd_result_success(result));
	assert_null(rlmd_result_error(result));
	assert_true(text_equal(rlmd_result_output(result), "the end"));
	assert_int_equal(rlmd_result_stop(result), RLMD_STOP_FINAL);
	assert_true(rlmd_result_usage(result, &usage));
	assert_int_equal(watch.turns, 2);
	assert_int_equal(watch.calls, 2);
	assert_int_equal(watch.runs, 2);
	assert_int_equal(usage.subcalls, 2);
	assert_int_equal(usage.llm_calls, 2 + 2 + 2);
	assert_int_equal(watch.count[ITERATION], 4);
	assert_int_equal(watch.count[CODE], 4);
	assert_int_equal(watch.count[OUTPUT], 4);
	assert_int_equal(watch.count[END], 1);
	assert_int_equal(watch.events_after_end, 0);
	assert_true(
		text_starts(rlmd_result_json(result), "{\"event\":\"result\",\"success\":true"));
	close_watch(&watch);
}

/* From inside of any: cancelled, it ends with that; interrupted, with an answer; freed, it is not
 * heard of again; and another job begins. */
static void test_from_inside(void **state)
{
	struct watch watch;

	(void)state;
	for (enum hook at = ITERATION; at < HOOKS; at++) {
		if (at == DELTA)
			continue;
		for (enum act what = INTERRUPT; what <= START; what++) {
			open_watch(&watch, what, at);
			play(&watch);
			assert_true(watch.acted);
			assert_int_equal(watch.after, 0);
			if (what == CANCEL && at != END)
				assert_string_equal(watch.ended, "cancelled");
			if (what == INTERRUPT && at == ITERATION)
				assert_string_equal(watch.ended, "interrupted");
			if (what == START)
				assert_int_equal(watch.count[END], 2);
			if (what == FREE && at != END)
				assert_int_equal(watch.count[END], 0);
			close_watch(&watch);
		}
	}
}

static size_t deltas;

static void on_delta(void *owner, struct rlmd_job *job, struct rlmd_text words)
{
	(void)owner;
	(void)job;
	deltas += words.size;
}

static void on_warning(void *owner, struct rlmd_job *job, const char *text)
{
	(void)job;
	snprintf(owner, 64, "%s", text);
}

static struct llm_usage most_of_it(const struct llm_request *request)
{
	(void)request;
	return (struct llm_usage){.input = 85000, .output = 5};
}

/* At four fifths of a limit. What deltas are is the business of llm/test_delta.c. */
static void test_budget_warning(void **state)
{
	char warned[64] = "";
	const struct rlmd_engine_options engine_options = {.size = sizeof engine_options};
	const struct rlmd_hooks hooks = {.size = sizeof hooks,
					 .budget_warning = on_warning,
					 .delta = on_delta,
					 .owner = warned};
	struct stage_config config = usual;
	struct rlmd_limits limits;
	struct rlmd_job_options options;
	struct watch watch = {.engine = rlmd_engine_new(&engine_options, NULL)};

	(void)state;
	fake_model = recursing;
	fake_provider(watch.engine);
	config.limits.tokens = 100000;
	fake_usage = most_of_it;
	options = stage_options(&config, &limits);
	options.task = text_of("the task");
	options.hooks = &hooks;
	fake_attempts = 1;
	watch.job = rlmd_job_start(watch.engine, &options, NULL);
	play(&watch);
	fake_attempts = 0;
	fake_usage = NULL;
	assert_non_null(strstr(warned, "% of budget"));
	close_watch(&watch);
}

static void add_line(void *owner, struct rlmd_job *job, struct rlmd_text json)
{
	json_t *event = json_loadb(json.bytes, json.size, 0, NULL);

	(void)job;
	assert_non_null(event);
	json_array_append_new(owner, event);
}

/* All that one job tells of events, of which it is asked for some; new. */
static json_t *lines_of(const char *const *names, bool without_tree, char **ret_result)
{
	json_t *lines = json_array();
	const struct rlmd_hooks hooks = {
		.size = sizeof hooks, .event = add_line, .events = names, .owner = lines};
	const struct rlmd_engine_options engine_options = {.size = sizeof engine_options};
	struct rlmd_limits limits;
	struct rlmd_job_options options = stage_options(&usual, &limits);
	struct watch watch = {.engine = rlmd_engine_new(&engine_options, NULL)};

	fake_model = recursing;
	fake_provider(watch.engine);
	options.task = text_of("the task");
	options.hooks = &hooks;
	options.without_tree = without_tree;
	watch.job = rlmd_job_start(watch.engine, &options, NULL);
	assert_non_null(watch.job);
	play(&watch);
	*ret_result = text_copy(rlmd_result_json(rlmd_job_result(watch.job)));
	close_watch(&watch);
	return lines;
}

/* Events that were not asked for are not told; those that are have the numbers that they have among
 * all, and the result is the same. */
static void test_some_events(void **state)
{
	static const char *const names[] = {"response", "end", NULL};
	char *all_result, *some_result;
	json_t *all = lines_of(NULL, false, &all_result), *event;
	json_t *some = lines_of(names, false, &some_result);
	json_t *result = json_loads(all_result, 0, NULL), *same = json_loads(some_result, 0, NULL);
	size_t i, place = 0;

	(void)state;
	json_array_foreach (all, i, event) {
		const char *name = json_get_string(event, "event");
		const json_t *other = json_array_get(some, place);

		assert_int_equal(json_get_integer(event, "seq", -1), i);
		if (strcmp(name, "response") && strcmp(name, "end"))
			continue;
		assert_string_equal(json_get_string(other, "event"), name);
		assert_int_equal(json_get_integer(other, "seq", -1), i);
		place++;
	}
	assert_int_equal(json_array_size(some), place);
	assert_true(place > 2);
	assert_int_equal(json_get_integer(result, "seq", -1), json_get_integer(same, "seq", -2));
	assert_int_equal(
		json_array_size(json_object_get(json_object_get(same, "trace"), "subcalls")), 2);
	json_decref(all);
	json_decref(some);
	json_decref(result);
	json_decref(same);
	free(all_result);
	free(some_result);
}

static void test_without_tree(void **state)
{
	static const char *const none[] = {NULL}, *const wrong[] = {"end", "ends", NULL};
	const struct rlmd_hooks hooks = {.size = sizeof hooks, .events = wrong};
	const struct rlmd_engine_options engine_options = {.size = sizeof engine_options};
	struct rlmd_limits limits;
	struct rlmd_job_options options = stage_options(&usual, &limits);
	struct rlmd_engine *engine = rlmd_engine_new(&engine_options, NULL);
	struct rlmd_error err = {0};
	char *text;
	json_t *lines = lines_of(none, true, &text), *result = json_loads(text, 0, NULL);

	(void)state;
	assert_int_equal(json_array_size(lines), 0);
	assert_true(json_is_null(json_object_get(result, "trace")));
	assert_true(text_equal(json_get_text(result, "output"), "the end"));
	fake_provider(engine);
	options.task = text_of("the task");
	options.hooks = &hooks;
	assert_null(rlmd_job_start(engine, &options, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(err.text, "\"ends\""));
	rlmd_engine_free(engine);
	json_decref(lines);
	json_decref(result);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_are_told),   cmocka_unit_test(test_from_inside),
		cmocka_unit_test(test_budget_warning), cmocka_unit_test(test_some_events),
		cmocka_unit_test(test_without_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
