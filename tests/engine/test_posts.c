/* engine/posts: functions that other threads have the loop call, in their order. */
#include "engine/posts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/loop.h"

enum { THREADS = 4, POSTS = 500 };

static struct event_base *base;
static struct posts *posts;
static int all;

struct line {
	int called[POSTS], count;
};

struct call {
	struct line *line;
	int number;
};

static struct line lines[THREADS];
static struct call calls[THREADS][POSTS];

static int set_up(void **state)
{
	(void)state;
	all = 0;
	base = loop_new();
	posts = posts_new(base, NULL);
	return !posts;
}

static int tear_down(void **state)
{
	(void)state;
	posts_free(posts);
	event_base_free(base);
	return 0;
}

static void on_post(void *owner)
{
	struct call *call = owner;

	call->line->called[call->line->count++] = call->number;
	all++;
}

static void *post_all(void *owner)
{
	struct line *line = owner;

	for (int i = 0; i < POSTS; i++) {
		struct call *call = &calls[line - lines][i];

		*call = (struct call){line, i};
		posts_add(posts, on_post, call);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		lines[i] = (struct line){.count = 0};
		assert_int_equal(pthread_create(&threads[i], NULL, post_all, &lines[i]), 0);
	}
	while (all < THREADS * POSTS)
		event_base_loop(base, EVLOOP_ONCE);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		for (int j = 0; j < POSTS; j++)
			assert_int_equal(lines[i].called[j], j);
	}
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(all, THREADS * POSTS);
}

static void on_again(void *owner)
{
	if (++all < 3)
		posts_add(owner, on_again, owner);
}

static void test_a_post_from_inside_of_one(void **state)
{
	(void)state;
	posts_add(posts, on_again, posts);
	while (all < 3)
		event_base_loop(base, EVLOOP_ONCE);
	assert_int_equal(event_base_loop(base, EVLOOP_NONBLOCK), 0);
	assert_int_equal(all, 3);
}

/* They are not called, and their memory is not left. */
static void test_freed_before(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		posts_add(posts, on_again, posts);
	posts_free(posts);
	posts = posts_new(base, NULL);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(all, 0);
}

/* The loop has a descriptor, by which it is known that it waits for the posts. */
static void test_the_descriptor(void **state)
{
	(void)state;
	assert_true(posts_loop_fd(posts) >= 0);
	assert_int_equal(posts_loop_fd(posts), posts_loop_fd(posts));
	assert_int_equal(loop_fd(STDIN_FILENO), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_threads),
		TEST(test_a_post_from_inside_of_one),
		TEST(test_freed_before),
		TEST(test_the_descriptor),
	};

	alloc_install();
	return cmocka_run_group_tests_name("posts", tests, NULL, NULL);
}
