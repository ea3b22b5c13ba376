/* cli/job_view: what is said of a job while it runs, and at its end. */
#include "cli/job_view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/money.h"
#include "cli/progress.h"
#include "cli/tell.h"
#include "told.h"

static const char *const events[] = {
	"{\"event\":\"run\",\"run\":\"r1\",\"depth\":1,\"task\":\"count\"}",
	"{\"event\":\"response\",\"run\":\"r1\",\"index\":0,\"model\":\"m\",\"duration\":1500,"
	"\"prompt\":{\"tokens\":2000},\"response\":{\"tokens\":7,\"cost\":0.5,\"content\":\"a\\nb\"}}",
	"{\"event\":\"llm_call\",\"run\":\"r1\",\"kind\":\"llm_query\",\"model\":\"m\",\"cached\":true}",
	"{\"event\":\"llm_call\",\"run\":\"r1\",\"kind\":\"llm_query\",\"error\":{\"kind\":\"cancelled\"}}",
	"{\"event\":\"code\",\"run\":\"r1\",\"duration\":20,\"stdout\":\"out\\n\",\"stderr\":\"\",\"error\":\"\"}",
	"{\"event\":\"end\",\"run\":\"r1\",\"stopReason\":\"final\"}",
	"{\"event\":\"operation_end\",\"run\":\"r1\",\"id\":\"o\",\"status\":\"failed\",\"tokens\":3,\"duration\":1,"
	"\"error\":{\"message\":\"no\"}}",
};

static const char *tell_all(struct told *told, int verbose)
{
	struct job_view view = {.verbose = verbose};

	tell_setup(RLMD_LOG_DEBUG, LOG_FORMAT_TEXT, false);
	told_begin(told);
	for (size_t i = 0; i < sizeof events / sizeof *events; i++)
		job_view_event(&view, text_of(events[i]));
	return told_end(told);
}

static void test_events(void **state)
{
	struct told told;

	(void)state;
	assert_string_equal(tell_all(&told, 0), "");
	assert_string_equal(tell_all(&told, 1),
			    "rlmd: [r1] run at depth 1: count\n"
			    "rlmd: [r1] turn 1: m, 2.0k tokens in, 7 out, $0.50, 1.5s\n"
			    "rlmd: [r1] llm_query: m, answered before, from the cache\n"
			    "rlmd: [r1] llm_query was cancelled\n"
			    "rlmd: [r1] run ended: final\n"
			    "rlmd: [r1] o failed: 3 tokens, 1ms; no\n");
	assert_non_null(strstr(tell_all(&told, 2), "rlmd: [r1] < a\nrlmd: [r1] < b\n"));
	assert_non_null(strstr(told.text, "rlmd: [r1] block: 20ms, 4 bytes printed\n"
					  "rlmd: [r1] | out\n"));
}

/* Told once in a while only, and not where a line shows it anyway. */
static void test_waiting(void **state)
{
	static const char waits[] =
		"{\"event\":\"waiting\",\"model\":\"m\",\"reason\":\"busy\",\"waited\":2500,\"next\":500}";
	struct job_view view = {0}, live = {.live = true};
	struct told told;

	(void)state;
	told_begin(&told);
	job_view_event(&view, text_of(waits));
	job_view_event(&view, text_of(waits));
	job_view_event(&live, text_of(waits));
	assert_string_equal(told_end(&told),
			    "rlmd: waiting for m: busy, 2s so far, asked again in 500ms\n");
	assert_string_equal(view.busy, "busy");
	job_view_event(&view, text_of("{\"event\":\"run\"}"));
	assert_string_equal(view.busy, "busy");
	job_view_event(&view, text_of("{\"event\":\"response\"}"));
	assert_string_equal(view.busy, "");
}

static void test_wanted_events(void **state)
{
	(void)state;
	assert_null(job_view_events(&(struct job_view){.verbose = 1}));
	assert_string_equal(job_view_events(&(struct job_view){0})[0], "waiting");
	assert_null(job_view_events(&(struct job_view){0})[1]);
	assert_string_equal(job_view_events(&(struct job_view){.live = true})[2], "llm_call");
}

/* Cost and time are the last to go. */
static void test_what_goes_first(void **state)
{
	static const char *const lines[] = {
		("finishing (Ctrl-C stops now) | turn 3 | depth 1 | 2 calls in flight | 1.2k "
		 "tokens | $0.10 of $5.00 | 7s"),
		"finishing | turn 3 | depth 1 | 2 calls | $0.10 of $5.00 | 7s",
		"finishing | turn 3 | depth 1 | $0.10 of $5.00 | 7s",
		"finishing | turn 3 | $0.10 of $5.00 | 7s",
		"$0.10 of $5.00 | 7s",
		"$0.10 of $5.00",
		"$0.10",
		"",
	};
	const struct rlmd_job_status now = {
		.size = sizeof now,
		.calls_in_flight = 2,
		.tokens = 1200,
		.cost = MONEY_DOLLAR / 10,
		.max_cost = 5 * MONEY_DOLLAR,
		.elapsed_ms = 7900,
		.interrupted = true,
	};
	struct progress_line line = {.count = 0};
	size_t width = PROGRESS_LINE_MAX, next = 0;
	char out[PROGRESS_LINE_MAX];

	(void)state;
	job_view_describe(&(struct job_view){0}, &now, "turn 3 | depth 1", &line);
	do {
		progress_format(&line, width, out);
		assert_string_equal(out, lines[next++]);
		width = strlen(out) - 1;
	} while (*out);
}

static void test_a_wait_in_the_line(void **state)
{
	const struct job_view view = {.busy = "it is being loaded",
				      .busy_since = clock_ms() - 61000};
	const struct rlmd_job_status now = {.size = sizeof now, .max_cost = RLMD_UNLIMITED};
	struct progress_line line = {.count = 0};
	char out[PROGRESS_LINE_MAX];

	(void)state;
	job_view_describe(&view, &now, "turn 3 | depth 1", &line);
	progress_format(&line, 200, out);
	assert_int_equal(strncmp(out, "waiting 1m0", 11), 0);
	assert_non_null(
		strstr(out, "s: it is being loaded | 0 calls in flight | 0 tokens | $0.00 | 0s"));
}

static void test_summary(void **state)
{
	json_t *result = json_pack(
		"{s:{s:i, s:i, s:i, s:i, s:i, s:f, s:b}, s:{s:s, s:[s, s]}, s:[s, s]}", "usage",
		"llmCalls", 8, "cachedCalls", 3, "duration", 2700, "inputTokens", 12000,
		"outputTokens", 300, "cost", 0.25, "estimated", 1, "sandbox", "level", "L4",
		"layers", "one", "two", "warnings", "told before", "new");
	json_t *told_before = json_pack("[s]", "told before");
	struct told told;

	(void)state;
	told_begin(&told);
	job_view_summary(&(struct job_view){0}, result, told_before, "done in", "4 turns",
			 5 * MONEY_DOLLAR);
	assert_string_equal(
		told_end(&told),
		"rlmd: done in 2.7s: 4 turns, 8 calls (3 from the cache), 12k tokens in, 300 "
		"out, $0.25 of $5.00, partly estimated\n"
		"rlmd: isolation L4\nrlmd: warning: new\n");
	told_begin(&told);
	job_view_summary(&(struct job_view){.verbose = 1}, result, told_before, "done in", "", 0);
	assert_non_null(strstr(told_end(&told), "rlmd: isolation L4 (one, two)\n"));
	json_decref(result);
	json_decref(told_before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_wanted_events),
		cmocka_unit_test(test_what_goes_first),
		cmocka_unit_test(test_a_wait_in_the_line),
		cmocka_unit_test(test_summary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
