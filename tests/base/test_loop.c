#include "base/loop.h"

#include <event2/event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

enum { ENDLESS = 100000, MANY = 1000, TURN = 512 };

/* Somebody who makes himself due again and again, and somebody who waits for a pipe. */
struct two {
	struct event *busy, *other;
	int64_t us; /* that each of his turns takes */
	int turns, seen;
	int pipe[2];
};

static void on_busy(evutil_socket_t fd, short what, void *owner)
{
	struct two *two = owner;
	int64_t until = clock_us() + two->us;

	(void)fd;
	(void)what;
	while (clock_us() < until)
		continue;
	if (!two->turns++)
		assert_int_equal(write(two->pipe[1], "x", 1), 1);
	if (two->turns < ENDLESS && !two->seen)
		event_active(two->busy, 0, 0);
}

static void on_other(evutil_socket_t fd, short what, void *owner)
{
	struct two *two = owner;

	(void)fd;
	(void)what;
	two->seen = two->turns;
}

/* How many turns the busy one had until the other had his. */
static int turns_before(int64_t us)
{
	struct event_base *base = loop_new();
	struct two two = {.us = us};

	assert_int_equal(pipe(two.pipe), 0);
	two.busy = event_new(base, -1, 0, on_busy, &two);
	two.other = event_new(base, two.pipe[0], EV_READ, on_other, &two);
	event_add(two.other, NULL);
	event_active(two.busy, 0, 0);
	event_base_dispatch(base);
	event_free(two.busy);
	event_free(two.other);
	close(two.pipe[0]);
	close(two.pipe[1]);
	event_base_free(base);
	return two.seen;
}

/* A callback that posts the next one, without end, keeps nobody waiting. */
static void test_posts_take_turns(void **state)
{
	int turns = turns_before(0);

	(void)state;
	assert_true(turns > 0 && turns <= TURN);
}

/* Nor do long ones: then the kernel is asked sooner, after two of them where its coarse clock is
 * not late, as it is on a machine that others hold up. */
static void test_long_turns(void **state)
{
	int turns = turns_before(5000);

	(void)state;
	assert_true(turns > 0 && turns <= TURN / 8);
}

static int done;

static void on_usual(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	(void)owner;
	done++;
}

static void on_urgent(evutil_socket_t fd, short what, void *ret_done)
{
	(void)fd;
	(void)what;
	*(int *)ret_done = done;
}

/* Behind a thousand others that are due, or among them: a limit of time, and what is posted. */
static void test_urgent_comes_first(void **state)
{
	struct event_base *base = loop_new();
	struct event *usual[MANY], *timer, *posted;
	int at_timer = -1, at_posted = -1;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		usual[i] = event_new(base, -1, 0, on_usual, NULL);
		event_active(usual[i], 0, 0);
	}
	timer = evtimer_new(base, on_urgent, &at_timer);
	loop_make_urgent(timer);
	evtimer_add(timer, &(struct timeval){0});
	posted = event_new(base, -1, 0, on_urgent, &at_posted);
	loop_make_urgent(posted);
	event_active(posted, 0, 0);
	event_base_dispatch(base);
	assert_int_equal(done, MANY);
	assert_int_equal(at_posted, 0);
	assert_int_equal(at_timer, 0);
	for (int i = 0; i < MANY; i++)
		event_free(usual[i]);
	event_free(timer);
	event_free(posted);
	event_base_free(base);
}

static int in_order[MANY], ran;

static void on_post(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	in_order[ran++] = *(int *)owner;
}

/* Events posted at the same time come in the order in which it was posted, on a loop of any make.
 */
static void test_posts_stand_in_line(void **state)
{
	static int numbers[MANY];
	struct event_base *bases[] = {loop_new(), event_base_new()};
	struct event *events[MANY];

	(void)state;
	for (size_t b = 0; b < 2; b++) {
		ran = 0;
		for (int i = 0; i < MANY; i++) {
			numbers[i] = i;
			events[i] = event_new(bases[b], -1, 0, on_post, &numbers[i]);
			loop_post(events[i]);
		}
		for (int i = 0; i < MANY; i += 3)
			event_del(events[i]);
		event_base_dispatch(bases[b]);
		assert_int_equal(ran, MANY - (MANY + 2) / 3);
		for (int i = 1; i < ran; i++)
			assert_true(in_order[i - 1] < in_order[i]);
		for (int i = 0; i < MANY; i++)
			event_free(events[i]);
		event_base_free(bases[b]);
	}
}

static void *see_mask(void *owner)
{
	pthread_sigmask(SIG_SETMASK, NULL, owner);
	return owner;
}

/* All that can be blocked, and only in the thread. */
static void test_threads_hear_no_signals(void **state)
{
	sigset_t seen, mine;
	struct rlmd_error err;
	pthread_t thread;
	void *end;

	(void)state;
	assert_true(loop_start_thread(&thread, see_mask, &seen, &err));
	assert_int_equal(pthread_join(thread, &end), 0);
	assert_ptr_equal(end, &seen);
	assert_true(sigismember(&seen, SIGINT) && sigismember(&seen, SIGTERM) &&
		    sigismember(&seen, SIGCHLD));
	pthread_sigmask(SIG_SETMASK, NULL, &mine);
	assert_false(sigismember(&mine, SIGINT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_posts_take_turns),
		cmocka_unit_test(test_posts_stand_in_line),
		cmocka_unit_test(test_long_turns),
		cmocka_unit_test(test_urgent_comes_first),
		cmocka_unit_test(test_threads_hear_no_signals),
	};

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
