/* Messages that nobody has counted are counted in steps, and come to what they come to at once. */
#include "engine/token_counter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/loop.h"

enum { LONG = 3 << 20, AT_ONCE = 256 << 10 };

static struct {
	struct event_base *base;
	struct event *turn;
	size_t turns, done;
	char *text;
} test;

static void on_turn(evutil_socket_t fd, short what, void *owner)
{
	(void)fd, (void)what, (void)owner;
	test.turns++;
	loop_post(test.turn);
}

static void on_done(void *owner)
{
	assert_ptr_equal(owner, &test);
	test.done++;
	event_base_loopbreak(test.base);
}

static int set_up(void **state)
{
	static const char words[] = "some words, 1234 and \xc3\xa9, of which there are many\n";

	(void)state;
	test.base = loop_new();
	test.turn = evtimer_new(test.base, on_turn, NULL);
	test.text = malloc(LONG);
	for (size_t i = 0; i < LONG; i++)
		test.text[i] = words[i % (sizeof words - 1)];
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	event_free(test.turn);
	event_base_free(test.base);
	free(test.text);
	return 0;
}

static void test_steps(void **state)
{
	static const struct text_scan given = {.bytes = 7};
	struct llm_message messages[] = {{LLM_SYSTEM, {"be brief", 8}},
					 {LLM_USER, {test.text, LONG}},
					 {LLM_ASSISTANT, {test.text, LONG}, .scan = &given},
					 {LLM_USER, {test.text, LONG}, .timeless = {test.text, 99}},
					 {LLM_USER, {NULL, 0}}};
	struct text_scan whole = {0};
	struct token_counter *counter;

	(void)state;
	test.turns = test.done = 0;
	counter = token_counter_start(test.base, messages, 5, on_done, &test);
	assert_non_null(counter);
	loop_post(test.turn);
	event_base_dispatch(test.base);
	event_del(test.turn);
	assert_int_equal(test.done, 1);
	assert_true(test.turns >= LONG / AT_ONCE - 1);
	text_scan_feed(&whole, messages[1].text);
	text_scan_end(&whole);
	assert_memory_equal(&messages[1].scan->tokens.counts, &whole.tokens.counts,
			    sizeof whole.tokens.counts);
	assert_int_equal(messages[1].scan->characters, whole.characters);
	assert_int_equal(messages[1].scan->invalid, whole.invalid);
	assert_int_equal(messages[0].scan->bytes, 8);
	assert_ptr_equal(messages[2].scan, &given);
	assert_int_equal(messages[3].scan->bytes, 99);
	assert_int_equal(messages[4].scan->bytes, 0);
	token_counter_free(counter);
}

static void test_little(void **state)
{
	static const struct text_scan given;
	struct llm_message messages[] = {{LLM_USER, {test.text, LONG}, .scan = &given},
					 {LLM_USER, {test.text, 1000}}};

	(void)state;
	assert_null(token_counter_start(test.base, messages, 2, on_done, &test));
	assert_null(messages[1].scan);
}

static void test_cancelled(void **state)
{
	struct llm_message message = {LLM_USER, {test.text, LONG}};
	struct token_counter *counter = token_counter_start(test.base, &message, 1, on_done, &test);

	(void)state;
	test.done = 0;
	event_base_loop(test.base, EVLOOP_ONCE);
	token_counter_free(counter);
	event_base_dispatch(test.base); /* nothing is due any more */
	assert_int_equal(test.done, 0);
	assert_null(message.scan);
	token_counter_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_little),
		cmocka_unit_test(test_cancelled),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
