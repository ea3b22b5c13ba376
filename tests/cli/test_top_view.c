/* cli/top_view: a screen from the events of a trace. */
#include "cli/top_view.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"

#define FIRST  "11111111-0000-4000-8000-000000000000"
#define SECOND "22222222-0000-4000-8000-000000000000"

static struct top_view *view;

static void take(int64_t now, const char *json)
{
	json_auto_t *event = json_read(text_of(json), 10, NULL);

	assert_non_null(event);
	top_view_take(view, event, now);
}

static int setup(void **state)
{
	(void)state;
	view = top_view_new("a.jsonl");
	take(1000, "{\"event\": \"run\", \"seq\": 0, \"ms\": 0, \"run\": \"" FIRST "\", "
		   "\"parent\": null, \"depth\": 0, \"model\": \"big\"}");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	top_view_free(view);
	return 0;
}

static void respond(int64_t ms, const char *cost)
{
	auto_free char *json = NULL;

	assert_true(asprintf(&json,
			     "{\"event\": \"response\", \"seq\": 1, \"ms\": %d, \"run\": \"" FIRST
			     "\", \"index\": 0, \"prompt\": {\"tokens\": 1200}, \"response\": "
			     "{\"content\": \"look\", \"tokens\": 30, \"cost\": %s}}",
			     (int)ms, cost) > 0);
	take(1000 + ms, json);
}

static void assert_screen(int64_t now, int rows, int columns, const char *wanted)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	auto_free char *shown = NULL;

	top_view_draw(view, now, rows, columns, out);
	shown = text_drain(out, NULL);
	assert_string_equal(shown, wanted);
}

/* Each run says what it does, below the one that has started it. */
static void test_runs(void **state)
{
	(void)state;
	assert_screen(4000, 20, 200,
		      "under way for 3s | 1 run, 0 turns, 0 calls | 0 tokens in, 0 out | $0.0000 | "
		      "a.jsonl\n11111111 big, turn 1: asks its model for 3s");
	respond(2000, "0.25");
	take(3500, "{\"event\": \"run\", \"seq\": 2, \"ms\": 2500, \"run\": \"" SECOND
		   "\", \"parent\": \"" FIRST "\", \"depth\": 1, \"model\": \"small\"}");
	take(4500, "{\"event\": \"waiting\", \"seq\": 3, \"ms\": 3500, \"run\": \"" SECOND
		   "\", \"reason\": \"its rate is limited\"}");
	assert_screen(6500, 20, 200,
		      "under way for 5s | 2 runs, 1 turn, 1 call | 1.2k tokens in, 30 out | "
		      "$0.2500 | a.jsonl\n"
		      "11111111 big, turn 1: runs code for 3s\n"
		      "  22222222 small, turn 1: waits: its rate is limited for 2s\n"
		      "11111111 answered:\n< look");
	take(7000, "{\"event\": \"end\", \"seq\": 4, \"ms\": 6000, \"run\": \"" SECOND
		   "\", \"answerSource\": \"forced\", \"stopReason\": \"max-cost\", "
		   "\"finalAnswer\": \"so far\"}");
	take(7100, "{\"event\": \"iteration\", \"seq\": 5, \"ms\": 6100, \"run\": \"" FIRST
		   "\", \"index\": 0}");
	assert_screen(7100, 20, 200,
		      "under way for 6s | 2 runs, 1 turn, 1 call | 1.2k tokens in, 30 out | "
		      "$0.2500 | a.jsonl\n"
		      "11111111 big, turn 2: asks its model for 0s\n"
		      "  22222222 small, turn 1: forced (max-cost)\n"
		      "22222222 ended:\n= so far");
}

/* One that is over has no time that goes on; nobody knows what an unknown price comes to. */
static void test_its_end(void **state)
{
	(void)state;
	respond(500, "null");
	take(2000, "{\"event\": \"warning\", \"seq\": 2, \"ms\": 900, \"run\": \"" FIRST
		   "\", \"text\": \"a \\u001b[31mred one\"}");
	take(3000, "{\"event\": \"result\", \"seq\": 3, \"ms\": 2000, \"success\": false}");
	assert_screen(90000, 3, 200,
		      "failed after 2s | 1 run, 1 turn, 1 call | 1.2k tokens in, 30 out | $0.0000 "
		      "and calls without a price | 1 warning | a.jsonl\n"
		      "11111111 big, turn 1: runs code for 1s\nwarning: a \\x1b[31mred one");
}

/* Of a block the end is shown; a wide character that does not fit is left out. */
static void test_small_screens(void **state)
{
	(void)state;
	take(1000, "{\"event\": \"code\", \"seq\": 1, \"ms\": 0, \"run\": \"" FIRST
		   "\", \"code\": \"a\\nb\", \"stdout\": \"c\\n\\u65e5\\u672c\\u8a9e\\tx\", "
		   "\"stderr\": \"\", \"error\": null}");
	assert_screen(1000, 5, 7, "under w\n1111111\n1111111\n| c\n| 日本");
	assert_screen(1000, 5, 9, "under way\n11111111 \n11111111 \n| c\n| 日本語 ");
	assert_screen(1000, 2, 7, "under w\n1111111");
	assert_screen(1000, 1, 1, "u");
	assert_screen(1000, 0, 0, "");
}

/* More runs than there is room for: those that have ended go first. */
static void test_many_runs(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		auto_free char *json = NULL;

		assert_true(asprintf(&json,
				     "{\"event\": \"%s\", \"seq\": %d, \"ms\": 0, \"run\": "
				     "\"%08d\", \"parent\": \"" FIRST
				     "\", \"depth\": 1, \"model\": "
				     "\"small\", \"answerSource\": \"final_direct\"}",
				     i % 2 ? "end" : "run", i + 1, i / 2) > 0);
		take(1000, json);
	}
	take(1000, "{\"event\": \"run\", \"seq\": 2000, \"ms\": 0, \"run\": \"" SECOND
		   "\", \"parent\": \"" FIRST "\", \"depth\": 1, \"model\": \"small\"}");
	assert_screen(1000, 12, 60,
		      "under way for 0s | 502 runs, 0 turns, 0 calls | 0 tokens in,\n"
		      "11111111 big, turn 1: asks its model for 0s\n"
		      "  00000000 small, turn 1: final_direct\n"
		      "  22222222 small, turn 1: asks its model for 0s\n"
		      "(499 more runs)\n00000499 ended:");
}

/* A second run in the same file takes the place of the first. */
static void test_another_trace(void **state)
{
	(void)state;
	respond(500, "1");
	take(9000, "{\"event\": \"run\", \"seq\": 0, \"ms\": 0, \"run\": \"" SECOND
		   "\", \"parent\": null, \"depth\": 0, \"model\": \"m\"}");
	assert_screen(9000, 20, 200,
		      "under way for 0s | 1 run, 0 turns, 0 calls | 0 tokens in, 0 out | $0.0000 | "
		      "a.jsonl\n22222222 m, turn 1: asks its model for 0s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_its_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_small_screens, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_trace, setup, teardown),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests_name("top_view", tests, NULL, NULL);
}
