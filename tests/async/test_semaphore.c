/* So many at once, the rest in line by priority and then in order (ASY-5). */
#include "async/semaphore.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { WAITERS = 8 };

struct room {
	struct event_base *base;
	struct semaphore *semaphore;
	char started[256]; /* names, in the order of their callbacks */
	int depth;         /* callbacks on the C stack */
};

struct waiter {
	struct room *room;
	struct ticket *ticket;
	char name;
	void (*then)(struct waiter *); /* what it does when it starts, or NULL */
	struct waiter *other;          /* whom it does that to */
};

static void on_slot(void *owner)
{
	struct waiter *waiter = owner;
	struct room *room = waiter->room;
	size_t used = strlen(room->started);

	assert_int_equal(room->depth, 0);
	room->depth++;
	room->started[used] = waiter->name;
	room->started[used + 1] = '\0';
	if (waiter->then)
		waiter->then(waiter);
	room->depth--;
}

static void leave(struct waiter *waiter)
{
	ticket_free(waiter->ticket);
	waiter->ticket = NULL;
}

static void leave_and_drop_other(struct waiter *waiter)
{
	leave(waiter->other);
	leave(waiter);
}

static void come(struct room *room, struct waiter *waiter, char name, int priority)
{
	waiter->room = room;
	waiter->name = name;
	waiter->ticket = ticket_new(room->semaphore, priority, on_slot, waiter);
}

static void run(struct room *room)
{
	event_base_loop(room->base, EVLOOP_NONBLOCK);
}

static int set_up(void **state)
{
	static struct room room;

	room = (struct room){.base = event_base_new()};
	room.semaphore = semaphore_new(room.base, 2);
	*state = &room;
	return 0;
}

static int tear_down(void **state)
{
	struct room *room = *state;

	semaphore_free(room->semaphore);
	event_base_free(room->base);
	return 0;
}

/* As many start as there are slots; nobody is called before ticket_new() returned (C1). */
static void test_slots(void **state)
{
	struct room *room = *state;
	struct waiter waiters[WAITERS] = {0};

	for (int i = 0; i < 4; i++)
		come(room, &waiters[i], (char)('a' + i), 0);
	assert_string_equal(room->started, "");
	assert_int_equal(semaphore_waiting(room->semaphore), 4);
	run(room);
	assert_string_equal(room->started, "ab");
	assert_int_equal(semaphore_held(room->semaphore), 2);
	assert_int_equal(semaphore_waiting(room->semaphore), 2);
	leave(&waiters[1]);
	assert_string_equal(room->started, "ab");
	run(room);
	assert_string_equal(room->started, "abc");
	leave(&waiters[0]);
	leave(&waiters[2]);
	run(room);
	assert_string_equal(room->started, "abcd");
	leave(&waiters[3]);
	run(room);
	assert_int_equal(semaphore_held(room->semaphore), 0);
}

/* The higher priority first, then in the order in which they came. */
static void test_priority(void **state)
{
	static const int priorities[] = {0, -1, 5, 0, 5, -1, 7};
	struct room *room = *state;
	struct waiter waiters[7] = {0};

	semaphore_resize(room->semaphore, 1);
	for (int i = 0; i < 7; i++) {
		waiters[i].then = leave;
		come(room, &waiters[i], (char)('a' + i), priorities[i]);
	}
	for (int i = 0; i < 20; i++)
		run(room);
	assert_string_equal(room->started, "gceadbf");
}

/* More slots start more at once; fewer let the running ones finish. */
static void test_resize(void **state)
{
	struct room *room = *state;
	struct waiter waiters[WAITERS] = {0};

	for (int i = 0; i < 6; i++)
		come(room, &waiters[i], (char)('a' + i), 0);
	semaphore_resize(room->semaphore, 4);
	run(room);
	assert_string_equal(room->started, "abcd");
	semaphore_resize(room->semaphore, 1);
	for (int i = 0; i < 3; i++) {
		leave(&waiters[i]);
		run(room);
		assert_string_equal(room->started, "abcd");
	}
	leave(&waiters[3]);
	run(room);
	assert_string_equal(room->started, "abcde");
	semaphore_resize(room->semaphore, 0);
	leave(&waiters[4]);
	run(room);
	assert_string_equal(room->started, "abcde");
	assert_int_equal(semaphore_waiting(room->semaphore), 1);
	semaphore_resize(room->semaphore, 1);
	run(room);
	assert_string_equal(room->started, "abcdef");
	leave(&waiters[5]);
}

/* Who left the line is never called (C2), be it before or after a slot was free for it. */
static void test_leave_the_line(void **state)
{
	struct room *room = *state;
	struct waiter waiters[WAITERS] = {0};

	for (int i = 0; i < 5; i++)
		come(room, &waiters[i], (char)('a' + i), 0);
	leave(&waiters[0]);
	leave(&waiters[3]);
	run(room);
	assert_string_equal(room->started, "bc");
	leave(&waiters[1]);
	leave(&waiters[4]);
	run(room);
	assert_string_equal(room->started, "bc");
	leave(&waiters[2]);
	ticket_free(NULL);
}

/* A callback may free its own ticket and those of others that wait, without recursion. */
static void test_free_in_callback(void **state)
{
	struct room *room = *state;
	struct waiter waiters[WAITERS] = {0};

	waiters[0].then = leave_and_drop_other;
	waiters[0].other = &waiters[1];
	waiters[2].then = leave;
	for (int i = 0; i < 4; i++)
		come(room, &waiters[i], (char)('a' + i), 0);
	for (int i = 0; i < 5; i++)
		run(room);
	assert_string_equal(room->started, "acd");
	assert_int_equal(semaphore_held(room->semaphore), 1);
	leave(&waiters[3]);
}

static struct waiter late;

static void leave_and_come_again(struct waiter *waiter)
{
	leave(waiter);
	come(waiter->room, &late, 'z', 9);
}

/* A callback may stand in line again; it is not called before it returned. */
static void test_come_in_callback(void **state)
{
	struct room *room = *state;
	struct waiter first = {.then = leave_and_come_again}, second = {0};

	late = (struct waiter){0};
	semaphore_resize(room->semaphore, 1);
	come(room, &first, 'a', 0);
	come(room, &second, 'b', 0);
	for (int i = 0; i < 5; i++)
		run(room);
	assert_string_equal(room->started, "az");
	leave(&late);
	run(room);
	assert_string_equal(room->started, "azb");
	leave(&second);
}

static void leave_and_close(struct waiter *waiter)
{
	leave(waiter);
	semaphore_free(waiter->room->semaphore);
	waiter->room->semaphore = NULL;
}

/* The last callback may free the semaphore itself. */
static void test_close_in_callback(void **state)
{
	struct room *room = *state;
	struct waiter waiters[2] = {{.then = leave}, {.then = leave_and_close}};

	come(room, &waiters[0], 'a', 0);
	come(room, &waiters[1], 'b', 0);
	run(room);
	run(room);
	assert_string_equal(room->started, "ab");
	assert_null(room->semaphore);
}

static void count_and_leave(struct waiter *waiter)
{
	waiter->room->started[0] = '\0';
	waiter->name++;
	leave(waiter);
}

/* Ten thousand in line through one slot: each starts once. */
static void test_many(void **state)
{
	enum { MANY = 10000 };
	struct room *room = *state;
	static struct waiter waiters[MANY];

	memset(waiters, 0, sizeof waiters);
	semaphore_resize(room->semaphore, 1);
	for (int i = 0; i < MANY; i++) {
		waiters[i].then = count_and_leave;
		come(room, &waiters[i], '0', 0);
	}
	while (semaphore_waiting(room->semaphore))
		run(room);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(waiters[i].name, '1');
	assert_int_equal(semaphore_held(room->semaphore), 0);
}

enum { LINE = 40 };

static struct {
	struct waiter waiters[LINE];
	int priorities[LINE];
} line;

/* Who is next of those that are in line, by looking at each: the priority, then the order. */
static struct waiter *next_of_line(void)
{
	struct waiter *next = NULL;

	for (int i = 0; i < LINE; i++)
		if (line.waiters[i].ticket &&
		    (!next || line.priorities[i] > line.priorities[next - line.waiters]))
			next = &line.waiters[i];
	return next;
}

static void leave_in_turn(struct waiter *waiter)
{
	waiter->room->started[0] = '\0';
	assert_ptr_equal(waiter, next_of_line());
	leave(waiter);
}

static int roll(int sides)
{
	static uint32_t dice = 1;

	dice = dice * 1664525 + 1013904223;
	return (int)((dice >> 16) % (uint32_t)sides);
}

/* Whoever leaves the line from its midst, the rest stay in order. */
static void test_leave_from_the_midst(void **state)
{
	struct room *room = *state;

	for (int round = 0; round < 300; round++) {
		semaphore_resize(room->semaphore, 0);
		memset(&line, 0, sizeof line);
		for (int i = 0; i < LINE; i++) {
			line.priorities[i] = roll(16);
			line.waiters[i].then = leave_in_turn;
			come(room, &line.waiters[i], 'x', line.priorities[i]);
		}
		for (int i = 0; i < LINE / 2; i++)
			leave(&line.waiters[roll(LINE)]);
		semaphore_resize(room->semaphore, 1);
		while (semaphore_waiting(room->semaphore))
			run(room);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* Whoever returns a slot stands where he stood: behind those before him, before all others. */
static void test_return(void **state)
{
	struct room *room = *state;
	struct waiter waiters[4] = {0};

	for (int i = 0; i < 4; i++)
		come(room, &waiters[i], (char)('a' + i), 0);
	run(room);
	semaphore_resize(room->semaphore, 1);
	ticket_return(waiters[1].ticket);
	assert_int_equal(semaphore_held(room->semaphore), 1);
	assert_int_equal(semaphore_waiting(room->semaphore), 3);
	run(room);
	assert_string_equal(room->started, "ab");
	leave(&waiters[0]);
	run(room);
	assert_string_equal(room->started, "abb");
	ticket_return(waiters[1].ticket);
	leave(&waiters[1]);
	run(room);
	assert_string_equal(room->started, "abbc");
	leave(&waiters[3]);
	leave(&waiters[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_slots),
		TEST(test_priority),
		TEST(test_resize),
		TEST(test_return),
		TEST(test_leave_the_line),
		TEST(test_free_in_callback),
		TEST(test_come_in_callback),
		TEST(test_close_in_callback),
		TEST(test_many),
		TEST(test_leave_from_the_midst),
	};

	return cmocka_run_group_tests_name("semaphore", tests, NULL, NULL);
}
