/*
 * Random plans: what holds for one holds for all. The stage watches over starts
 * and results while they run; each is then ended, by stop or by free, from inside
 * a callback after every number of events.
 */
#include "effort.h"
#include "stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PLANS = 300, SIZE_MOST = 24 };

static uint32_t seed;

static uint32_t random_below(uint32_t limit)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 10) % limit;
}

struct scene {
	struct stage stage;
	struct part parts[SIZE_MOST];
	char ids[SIZE_MOST][8], inputs[SIZE_MOST][32];
	size_t count;
	enum rlmd_plan_strategy strategy;
	struct rlmd_plan_config config;
	int until; /* the event at which the end comes; -1: never */
	bool by_free;
};

static struct scene scene;

static void add_part(size_t index)
{
	struct part *part = &scene.parts[index];

	snprintf(scene.ids[index], sizeof scene.ids[index], "p%zu", index);
	*part = (struct part){
		.id = scene.ids[index],
		.priority = (int)random_below(3),
		.timeout = random_below(4) ? 0 : 1 + random_below(20),
		.ms = random_below(30),
		.tokens = random_below(50),
		.fails = random_below(4) ? NULL : "no",
		.at_once = !random_below(6),
		.waits = random_below(20),
		.refused = !random_below(8),
	};
	if (!index || scene.strategy == RLMD_PLAN_SPECULATIVE)
		return;
	for (uint32_t i = 0, count = random_below(4); i < count; i++)
		part->needs[i] = scene.ids[random_below((uint32_t)index)];
	if (part->needs[0] && scene.strategy != RLMD_PLAN_PARALLEL) {
		snprintf(scene.inputs[index], sizeof scene.inputs[index], "<{{%s}}>",
			 part->needs[0]);
		part->input = scene.inputs[index];
	}
}

static void on_event(struct stage *stage)
{
	if (stage->events != scene.until)
		return;
	if (scene.by_free)
		stage_drop(stage);
	else
		stage_stop(stage);
}

static void set_scene(uint32_t number)
{
	seed = number;
	scene = (struct scene){
		.count = 1 + random_below(SIZE_MOST),
		.strategy = (enum rlmd_plan_strategy)random_below(METRICS_STRATEGIES),
		.config = {.max_parallel = 1 + random_below(6),
			   .partial_failure = (enum rlmd_plan_failure)random_below(3)},
	};
	for (size_t i = 0; i < scene.count; i++)
		add_part(i);
	stage_open(&scene.stage);
	scene.stage.on_event = on_event;
	scene.stage.forgetful = random_below(2);
	scene.stage.queues = random_below(2);
	if (random_below(2)) {
		scene.stage.price = 1 + random_below(40);
		scene.stage.money = random_below(400);
		scene.stage.admitted_from = random_below(2);
	}
}

/* An operation that started got the response of what it names, or its error. */
static void check_input(const struct part *part)
{
	const struct part *need;
	char expected[16];

	if (!part->starts || !part->input)
		return;
	need = stage_part(&scene.stage, part->needs[0]);
	snprintf(expected, sizeof expected, "<%s>", need->id);
	if (need->result.status == RLMD_PLAN_SUCCEEDED)
		assert_string_equal(part->took, expected);
	else
		assert_memory_equal(part->took, "<Error: ", 8);
}

/* How many events it took. */
static int play(uint32_t number, int until, bool by_free)
{
	struct stage *stage = &scene.stage;
	int events;

	set_scene(number);
	scene.until = until;
	scene.by_free = by_free;
	stage_start(stage, scene.strategy, scene.parts, scene.count, &scene.config);
	if (!until)
		on_event(stage);
	stage_run(stage);
	events = stage->events;
	if (stage->execution) {
		int64_t tokens = 0;

		assert_int_equal(stage->dones, 1);
		for (size_t i = 0; i < scene.count; i++) {
			assert_int_equal(scene.parts[i].results, 1);
			tokens += scene.parts[i].result.tokens;
			check_input(&scene.parts[i]);
		}
		assert_int_equal(stage->summary.tokens, tokens);
		assert_true(stage->most <= scene.config.max_parallel);
	}
	stage_close(stage);
	return events;
}

/* One start, one result, dependencies first, never too many at once, sums that add up. */
static void test_random_plans(void **state)
{
	int events = 0;

	(void)state;
	for (uint32_t number = 0; number < 10 * effort(PLANS, PLANS / 10); number++)
		events += play(number, -1, false);
	assert_true((size_t)events > 10 * effort(PLANS, PLANS / 10));
}

/* Whenever it is stopped, everything ends at once and is told. */
static void test_stop_sweep(void **state)
{
	(void)state;
	for (uint32_t number = 0; number < effort(PLANS, PLANS / 10); number++)
		for (int until = 0, events = until; until <= events; until++)
			events = play(number, until, false);
}

/* Whenever it is freed, by whatever callback, nobody is called any more and nothing is left. */
static void test_free_sweep(void **state)
{
	(void)state;
	for (uint32_t number = 0; number < effort(PLANS, PLANS / 10); number++) {
		int all = play(number, -1, false);

		for (int until = 0; until <= all; until++)
			assert_int_equal(play(number, until, true), until);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_plans),
		cmocka_unit_test(test_stop_sweep),
		cmocka_unit_test(test_free_sweep),
	};

	return cmocka_run_group_tests_name("sweep", tests, NULL, NULL);
}
