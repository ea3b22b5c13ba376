/* Events that are as the one before, but for their text: these, and no others. */
#include "llm/event_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The string that is the member's value, as a scan shows it. */
static struct json_view string_at(struct rlmd_text event, const char *member)
{
	const char *start = strstr(event.bytes, member);
	const char *end;

	if (!start)
		return (struct json_view){0};
	start += strlen(member);
	end = strchr(start, '"');
	return (struct json_view){JSON_VIEW_STRING, false, text_from(start, (size_t)(end - start))};
}

static struct event_pattern pattern_of(const char *event)
{
	struct event_pattern pattern = {0};
	struct json_view text = string_at(text_of(event), "\"text\":\"");
	struct json_view idle = string_at(text_of(event), "\"idle\":\"");

	event_pattern_keep(&pattern, text_of(event), &text, &idle);
	return pattern;
}

/* Copied, so that a sanitizer sees every byte read beyond. */
static void assert_found(const struct event_pattern *pattern, const char *event,
			 const char *expected)
{
	char *copy = xstrndup(event, strlen(event)), *owned = NULL;
	struct json_view text;
	size_t size = event_pattern_find(pattern, text_from(copy, strlen(event)), &text);

	if (size != (expected ? strlen(event) : 0))
		fail_msg("%s", event);
	if (expected)
		assert_true(text_equal(json_view_text(&text, &owned), expected));
	free(owned);
	free(copy);
}

static void another_text(void **state)
{
	struct event_pattern pattern = pattern_of("{\"a\":1,\"text\":\"one\",\"b\":[null]}");

	(void)state;
	assert_found(&pattern, "{\"a\":1,\"text\":\"one\",\"b\":[null]}", "one");
	assert_found(&pattern, "{\"a\":1,\"text\":\"\",\"b\":[null]}", "");
	assert_found(&pattern, "{\"a\":1,\"text\":\"a longer one\",\"b\":[null]}", "a longer one");
	assert_found(&pattern, "{\"a\":1,\"text\":\"\\\"\\u20ac\\n\",\"b\":[null]}",
		     "\"\xe2\x82\xac\n");
	event_pattern_done(&pattern);
}

static void what_is_another_event(void **state)
{
	static const char *const others[] = {
		"",
		"{",
		"{\"a\":1,\"text\":\"one",
		"{\"a\":1,\"text\":\"one\"",
		"{\"a\":2,\"text\":\"one\",\"b\":[null]}",
		"{\"a\":1,\"text\":\"one\",\"b\":[true]}",
		"{\"a\":1,\"text\":\"one\",\"b\":[null]",
		"{\"a\":1,\"text\":null,\"b\":[null]}",
		"{\"a\":1,\"text\":\"o\"e\",\"b\":[null]}",
		"{\"a\":1,\"text\":\"x\",\"text\":\"one\",\"b\":[null]}",
		"{\"a\":1,\"text\":\"\xff\",\"b\":[null]}",
		"{\"a\":1,\"text\":\"\\ud800\",\"b\":[null]}",
		"{\"a\":1,\"text\":\"\\x\",\"b\":[null]}",
		"{\"a\":1,\"text\":\"\n\",\"b\":[null]}",
	};
	struct event_pattern pattern = pattern_of("{\"a\":1,\"text\":\"one\",\"b\":[null]}");

	(void)state;
	for (size_t i = 0; i < COUNT(others); i++)
		assert_found(&pattern, others[i], NULL);
	event_pattern_forget(&pattern);
	assert_found(&pattern, "{\"a\":1,\"text\":\"one\",\"b\":[null]}", NULL);
	assert_found(&pattern, "", NULL);
	event_pattern_done(&pattern);
}

/* An event ends where its bytes do, whatever stands behind them. */
static void what_stands_behind(void **state)
{
	static const char line[] = "{\"text\":\"one\"}\n",
			  lines[] = "{\"text\":\"two\"}\n{\"text\"";
	struct event_pattern pattern = pattern_of(line);
	struct json_view text;

	(void)state;
	assert_found(&pattern, "{\"text\":\"two\"}\n", "two");
	assert_found(&pattern, "{\"text\":\"two\"} \n", NULL);
	assert_found(&pattern, "{\"text\":\"two\"}", NULL);
	assert_int_equal(event_pattern_find(&pattern, text_of(lines), &text), strlen(line));
	event_pattern_done(&pattern);
}

/* A string that nobody reads may differ as well, on either side. */
static void an_idle_string(void **state)
{
	static const char *const before = "{\"idle\":\"12:00\",\"text\":\"one\"}";
	static const char *const after = "{\"text\":\"one\",\"idle\":\"x\"}";
	struct event_pattern pattern = pattern_of(before);

	(void)state;
	assert_found(&pattern, "{\"idle\":\"12:01.5\",\"text\":\"two\"}", "two");
	assert_found(&pattern, "{\"idle\":7,\"text\":\"two\"}", NULL);
	assert_found(&pattern, "{\"idle\":\"\xff\",\"text\":\"two\"}", NULL);
	event_pattern_done(&pattern);
	pattern = pattern_of(after);
	assert_found(&pattern, "{\"text\":\"two\",\"idle\":\"\"}", "two");
	assert_found(&pattern, "{\"text\":\"two\",\"idle\":\"\",\"c\":0}", NULL);
	event_pattern_done(&pattern);
}

/* A later event takes the place of the one before; a long one, or one without a text, of none. */
static void what_is_kept(void **state)
{
	struct event_pattern pattern = pattern_of("{\"text\":\"one\"}");
	struct json_view text = {0}, none = {0};
	char longer[5000];

	(void)state;
	event_pattern_keep(&pattern, text_of("{\"text\":null}"), &text, &none);
	assert_found(&pattern, "{\"text\":\"one\"}", NULL);
	memset(longer, ' ', sizeof longer);
	memcpy(longer, "{\"text\":\"one\"", 13);
	longer[sizeof longer - 1] = '\0';
	text = (struct json_view){JSON_VIEW_STRING, false, text_from(longer + 9, 3)};
	event_pattern_keep(&pattern, text_of(longer), &text, &none);
	assert_found(&pattern, longer, NULL);
	event_pattern_done(&pattern);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_text),       cmocka_unit_test(what_is_another_event),
		cmocka_unit_test(what_stands_behind), cmocka_unit_test(an_idle_string),
		cmocka_unit_test(what_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
