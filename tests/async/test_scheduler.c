/* So many at once, the rest in line by priority and then in order (ASY-5).
 */
#include "async/scheduler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { WAITERS = 8 };

struct hall {
	struct event_base *base;
	struct scheduler *scheduler;
	char started[256]; /* names, in the order of their callbacks */
	int depth;         /* callbacks on the C stack */
	int held, waiting; /* permits, as it should be */
};

struct waiter {
	struct hall *hall;
	struct permit *permit;
	char name;
	void (*then)(struct waiter *); /* what it does when it starts, or NULL */
	struct waiter *other;          /* whom it does that to */
};

static void on_permit(void *owner)
{
	struct waiter *waiter = owner;
	struct hall *hall = waiter->hall;
	size_t used = strlen(hall->started);

	assert_int_equal(hall->depth, 0);
	hall->depth++;
	hall->held++;
	hall->waiting--;
	assert_true(permit_held(waiter->permit));
	hall->started[used] = waiter->name;
	hall->started[used + 1] = '\0';
	if (waiter->then)
		waiter->then(waiter);
	hall->depth--;
}

static void leave(struct waiter *waiter)
{
	if (!waiter->permit)
		return;
	if (permit_held(waiter->permit))
		waiter->hall->held--;
	else
		waiter->hall->waiting--;
	permit_free(waiter->permit);
	waiter->permit = NULL;
}

static void leave_and_drop_other(struct waiter *waiter)
{
	leave(waiter->other);
	leave(waiter);
}

static void come(struct hall *hall, struct waiter *waiter, char name, int priority)
{
	struct flow *flow = scheduler_flow(hall->scheduler);

	waiter->hall = hall;
	waiter->name = name;
	waiter->permit = permit_ask(flow, priority, on_permit, waiter);
	hall->waiting++;
	assert_false(permit_held(waiter->permit));
}

static void come_back(struct waiter *waiter)
{
	permit_return(waiter->permit);
	waiter->hall->held--;
	waiter->hall->waiting++;
}

static void resize(struct hall *hall, size_t permits)
{
	flow_set_limit(scheduler_flow(hall->scheduler), permits);
}

static void run(struct hall *hall)
{
	event_base_dispatch(hall->base);
}

static int set_up(void **state)
{
	static struct hall hall;

	hall = (struct hall){.base = event_base_new()};
	hall.scheduler = scheduler_new(hall.base, 2);
	*state = &hall;
	return 0;
}

static int tear_down(void **state)
{
	struct hall *hall = *state;

	scheduler_free(hall->scheduler);
	event_base_free(hall->base);
	return 0;
}

/* As many start as there are permits; nobody is called before permit_ask() returned (C1). */
static void test_permits(void **state)
{
	struct hall *hall = *state;
	struct waiter waiters[WAITERS] = {0};

	for (int i = 0; i < 4; i++)
		come(hall, &waiters[i], (char)('a' + i), 0);
	assert_string_equal(hall->started, "");
	assert_int_equal(hall->waiting, 4);
	run(hall);
	assert_string_equal(hall->started, "ab");
	assert_int_equal(hall->held, 2);
	assert_int_equal(hall->waiting, 2);
	leave(&waiters[1]);
	assert_string_equal(hall->started, "ab");
	run(hall);
	assert_string_equal(hall->started, "abc");
	leave(&waiters[0]);
	leave(&waiters[2]);
	run(hall);
	assert_string_equal(hall->started, "abcd");
	leave(&waiters[3]);
	run(hall);
	assert_int_equal(hall->held, 0);
}

/* The higher priority first, then in the order in which they came. */
static void test_priority(void **state)
{
	static const int priorities[] = {0, -1, 5, 0, 5, -1, 7};
	struct hall *hall = *state;
	struct waiter waiters[7] = {0};

	resize(hall, 1);
	for (int i = 0; i < 7; i++) {
		waiters[i].then = leave;
		come(hall, &waiters[i], (char)('a' + i), priorities[i]);
	}
	for (int i = 0; i < 20; i++)
		run(hall);
	assert_string_equal(hall->started, "gceadbf");
}

/* More permits start more at once; fewer let the running ones finish. */
static void test_resize(void **state)
{
	struct hall *hall = *state;
	struct waiter waiters[WAITERS] = {0};

	for (int i = 0; i < 6; i++)
		come(hall, &waiters[i], (char)('a' + i), 0);
	resize(hall, 4);
	run(hall);
	assert_string_equal(hall->started, "abcd");
	resize(hall, 1);
	for (int i = 0; i < 3; i++) {
		leave(&waiters[i]);
		run(hall);
		assert_string_equal(hall->started, "abcd");
	}
	leave(&waiters[3]);
	run(hall);
	assert_string_equal(hall->started, "abcde");
	resize(hall, 0);
	leave(&waiters[4]);
	run(hall);
	assert_string_equal(hall->started, "abcde");
	assert_int_equal(hall->waiting, 1);
	resize(hall, 1);
	run(hall);
	assert_string_equal(hall->started, "abcdef");
	leave(&waiters[5]);
}

/* A caller that left the line is never called (C2), be it before or after a permit was free for it.
 */
static void test_leave_the_line(void **state)
{
	struct hall *hall = *state;
	struct waiter waiters[WAITERS] = {0};

	for (int i = 0; i < 5; i++)
		come(hall, &waiters[i], (char)('a' + i), 0);
	leave(&waiters[0]);
	leave(&waiters[3]);
	run(hall);
	assert_string_equal(hall->started, "bc");
	leave(&waiters[1]);
	leave(&waiters[4]);
	run(hall);
	assert_string_equal(hall->started, "bc");
	leave(&waiters[2]);
	permit_free(NULL);
}

/* A callback may free its own permit and those of others that wait, without recursion. */
static void test_free_in_callback(void **state)
{
	struct hall *hall = *state;
	struct waiter waiters[WAITERS] = {0};

	waiters[0].then = leave_and_drop_other;
	waiters[0].other = &waiters[1];
	waiters[2].then = leave;
	for (int i = 0; i < 4; i++)
		come(hall, &waiters[i], (char)('a' + i), 0);
	for (int i = 0; i < 5; i++)
		run(hall);
	assert_string_equal(hall->started, "acd");
	assert_int_equal(hall->held, 1);
	leave(&waiters[3]);
}

static struct waiter late;

static void leave_and_come_again(struct waiter *waiter)
{
	leave(waiter);
	come(waiter->hall, &late, 'z', 9);
}

/* A callback may stand in line again; it is not called before it returned. */
static void test_come_in_callback(void **state)
{
	struct hall *hall = *state;
	struct waiter first = {.then = leave_and_come_again}, second = {0};

	late = (struct waiter){0};
	resize(hall, 1);
	come(hall, &first, 'a', 0);
	come(hall, &second, 'b', 0);
	for (int i = 0; i < 5; i++)
		run(hall);
	assert_string_equal(hall->started, "az");
	leave(&late);
	run(hall);
	assert_string_equal(hall->started, "azb");
	leave(&second);
}

static void leave_and_close(struct waiter *waiter)
{
	leave(waiter);
	scheduler_free(waiter->hall->scheduler);
	waiter->hall->scheduler = NULL;
}

/* The last callback may free the scheduler itself. */
static void test_close_in_callback(void **state)
{
	struct hall *hall = *state;
	struct waiter waiters[2] = {{.then = leave}, {.then = leave_and_close}};

	come(hall, &waiters[0], 'a', 0);
	come(hall, &waiters[1], 'b', 0);
	run(hall);
	run(hall);
	assert_string_equal(hall->started, "ab");
	assert_null(hall->scheduler);
}

/* Permits that are free are given out several to a turn of the loop, in order; and never so many
 * that others on it wait for all of them. */
static void test_several_a_turn(void **state)
{
	enum { MANY = 40 };
	struct hall *hall = *state;
	struct waiter waiters[MANY];
	size_t before, turns = 0;

	resize(hall, MANY);
	for (int i = 0; i < MANY; i++) {
		waiters[i] = (struct waiter){0};
		come(hall, &waiters[i], (char)('A' + i), 0);
	}
	while (strlen(hall->started) < MANY) {
		before = strlen(hall->started);
		event_base_loop(hall->base, EVLOOP_ONCE);
		assert_in_range(strlen(hall->started) - before, 1, 8);
		turns++;
	}
	assert_in_range(turns, 2, MANY / 4);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(hall->started[i], 'A' + i);
		leave(&waiters[i]);
	}
}

static void count_and_leave(struct waiter *waiter)
{
	waiter->hall->started[0] = '\0';
	waiter->name++;
	leave(waiter);
}

/* Ten thousand in line through one permit: each starts once. */
static void test_many(void **state)
{
	enum { MANY = 10000 };
	struct hall *hall = *state;
	static struct waiter waiters[MANY];

	memset(waiters, 0, sizeof waiters);
	resize(hall, 1);
	for (int i = 0; i < MANY; i++) {
		waiters[i].then = count_and_leave;
		come(hall, &waiters[i], '0', 0);
	}
	while (hall->waiting)
		run(hall);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(waiters[i].name, '1');
	assert_int_equal(hall->held, 0);
}

enum { LINE = 40 };

static struct {
	struct waiter waiters[LINE];
	int priorities[LINE];
} line;

/* The next of those that are in line, by looking at each: the priority, then the order. */
static struct waiter *next_of_line(void)
{
	struct waiter *next = NULL;

	for (int i = 0; i < LINE; i++)
		if (line.waiters[i].permit &&
		    (!next || line.priorities[i] > line.priorities[next - line.waiters]))
			next = &line.waiters[i];
	return next;
}

static void leave_in_turn(struct waiter *waiter)
{
	waiter->hall->started[0] = '\0';
	assert_ptr_equal(waiter, next_of_line());
	leave(waiter);
}

static int roll(int sides)
{
	static uint32_t dice = 1;

	dice = dice * 1664525 + 1013904223;
	return (int)((dice >> 16) % (uint32_t)sides);
}

/* One leaves the line from its midst, and the rest stay in order. */
static void test_leave_from_the_midst(void **state)
{
	struct hall *hall = *state;

	for (int round = 0; round < 300; round++) {
		resize(hall, 0);
		memset(&line, 0, sizeof line);
		for (int i = 0; i < LINE; i++) {
			line.priorities[i] = roll(16);
			line.waiters[i].then = leave_in_turn;
			come(hall, &line.waiters[i], 'x', line.priorities[i]);
		}
		for (int i = 0; i < LINE / 2; i++)
			leave(&line.waiters[roll(LINE)]);
		resize(hall, 1);
		while (hall->waiting)
			run(hall);
	}
}

/* A caller that returns a permit stands where it stood: behind those before him, before all others.
 */
static void test_return(void **state)
{
	struct hall *hall = *state;
	struct waiter waiters[4] = {0};

	for (int i = 0; i < 4; i++)
		come(hall, &waiters[i], (char)('a' + i), 0);
	run(hall);
	resize(hall, 1);
	come_back(&waiters[1]);
	assert_int_equal(hall->held, 1);
	assert_int_equal(hall->waiting, 3);
	run(hall);
	assert_string_equal(hall->started, "ab");
	leave(&waiters[0]);
	run(hall);
	assert_string_equal(hall->started, "abb");
	come_back(&waiters[1]);
	leave(&waiters[1]);
	run(hall);
	assert_string_equal(hall->started, "abbc");
	leave(&waiters[3]);
	leave(&waiters[2]);
}

static void come_to(struct hall *hall, struct flow *flow, struct waiter *waiter, char name)
{
	waiter->hall = hall;
	waiter->name = name;
	waiter->permit = permit_ask(flow, 0, on_permit, waiter);
	hall->waiting++;
}

static void rest(struct waiter *waiter)
{
	permit_rest(waiter->permit);
	assert_true(permit_held(waiter->permit));
}

/* A permit that rests is others' meanwhile, but not of its own flow's; it comes back in its place.
 */
static void test_rest(void **state)
{
	struct hall *hall = *state;
	struct flow *one = flow_new(scheduler_flow(hall->scheduler), 1);
	struct flow *other = flow_new(scheduler_flow(hall->scheduler), 1);
	struct waiter waiters[3] = {0};

	resize(hall, 1);
	flow_set_limit(one, 1);
	for (int i = 0; i < 3; i++)
		come_to(hall, i < 2 ? one : other, &waiters[i], (char)('a' + i));
	run(hall);
	rest(&waiters[0]);
	rest(&waiters[0]);
	run(hall);
	assert_string_equal(hall->started, "ac");
	come_back(&waiters[0]);
	run(hall);
	assert_string_equal(hall->started, "ac");
	leave(&waiters[2]);
	run(hall);
	assert_string_equal(hall->started, "aca");
	leave(&waiters[0]);
	run(hall);
	assert_string_equal(hall->started, "acab");
	for (int i = 0; i < 3; i++)
		leave(&waiters[i]);
	flow_free(one);
	flow_free(other);
}

/* So many in a window; what was asked for in vain does not count; without a rate all go on. */
static void test_rate(void **state)
{
	enum { LONG_MS = 3600000 };
	struct hall *hall = *state;
	struct flow *flow = flow_new(scheduler_flow(hall->scheduler), 1);
	struct waiter waiters[6] = {0};

	resize(hall, 6);
	flow_set_rate(flow, 2, LONG_MS);
	for (int i = 0; i < 6; i++)
		come_to(hall, flow, &waiters[i], (char)('a' + i));
	event_base_loop(hall->base, EVLOOP_NONBLOCK);
	assert_string_equal(hall->started, "ab");
	leave(&waiters[0]);
	event_base_loop(hall->base, EVLOOP_NONBLOCK);
	assert_string_equal(hall->started, "ab");
	permit_spare(waiters[1].permit);
	event_base_loop(hall->base, EVLOOP_NONBLOCK);
	assert_string_equal(hall->started, "abc");
	flow_set_rate(flow, 1, 1);
	while (hall->waiting)
		event_base_loop(hall->base, EVLOOP_ONCE);
	assert_string_equal(hall->started, "abcdef");
	for (int i = 0; i < 6; i++)
		leave(&waiters[i]);
	flow_free(flow);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_permits),
		TEST(test_several_a_turn),
		TEST(test_priority),
		TEST(test_resize),
		TEST(test_return),
		TEST(test_leave_the_line),
		TEST(test_free_in_callback),
		TEST(test_come_in_callback),
		TEST(test_close_in_callback),
		TEST(test_many),
		TEST(test_leave_from_the_midst),
		TEST(test_rest),
		TEST(test_rate),
	};

	return cmocka_run_group_tests_name("scheduler", tests, NULL, NULL);
}
