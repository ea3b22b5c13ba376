/* batch/trace_buffer: the trace of a job in bounded memory. */
#include "batch/trace_buffer.h"

#include <event2/buffer.h>
#include <rlmd/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"

static char *exported; /* owned: the lines of the last trace that was sent, and an attribute */

void rlmd_span_exporter_add(struct rlmd_span_exporter *exporter, struct rlmd_text lines,
			    const char *const *attributes)
{
	assert_null(exporter);
	free(exported);
	exported = xasprintf("%.*s%s=%s", (int)lines.size, lines.bytes, attributes[0],
			     attributes[1]);
}

static void add(struct trace_buffer *buffer, const char *event, const char *run, const char *parent,
		size_t size)
{
	auto_free char *padding = xcalloc(size + 1, 1);
	auto_free char *line = NULL;

	memset(padding, 'x', size);
	line = xasprintf("{\"event\":\"%s\",\"run\":\"%s\",\"parent\":%s,\"code\":\"%s\"}", event,
			 run, parent, padding);
	trace_buffer_add(buffer, text_of(line));
}

static char *written(const struct trace_buffer *buffer)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	trace_buffer_write(buffer, out);
	return text_drain(out, NULL);
}

static void test_all_of_it(void **state)
{
	struct trace_buffer *buffer = trace_buffer_new();
	auto_free char *text = NULL;

	(void)state;
	trace_buffer_add(buffer, text_of("{\"event\":\"run\",\"run\":\"r\",\"parent\":null}"));
	trace_buffer_add(buffer, text_of("{\"event\":\"end\",\"run\":\"r\"}"));
	text = written(buffer);
	assert_string_equal(text, "{\"event\":\"run\",\"run\":\"r\",\"parent\":null}\n"
				  "{\"event\":\"end\",\"run\":\"r\"}\n");
	trace_buffer_free(buffer);
	trace_buffer_free(NULL);
}

/* Of a long one the two ends are left, and the root stays what it was. */
static void test_bounds(void **state)
{
	struct trace_buffer *buffer = trace_buffer_new();
	auto_free char *text = NULL;

	(void)state;
	add(buffer, "run", "root", "null", 2 * TRACE_BUFFER_FIRST);
	for (int i = 0; i < 100; i++)
		add(buffer, "run", "middle", "\"root\"", 10000);
	add(buffer, "code", "root", "null", TRACE_BUFFER_LAST + 1);
	add(buffer, "run", "below", "\"gone\"", 1);
	add(buffer, "code", "below", "null", 1);
	for (int i = 0; i < 10; i++)
		add(buffer, "code", "root", "null", 10000);
	add(buffer, "end", "root", "null", 1);
	text = written(buffer);
	assert_in_range(strlen(text), TRACE_BUFFER_LAST - 30000,
			2 * TRACE_BUFFER_FIRST + TRACE_BUFFER_LAST + 10000);
	assert_non_null(strstr(text, "events of "));
	assert_non_null(strstr(text, "\"event\":\"end\""));
	assert_null(strstr(text, "below"));
	trace_buffer_free(buffer);
}

static void test_export(void **state)
{
	static const char *const attributes[] = {"rlmd.custom_id", "a", NULL};
	struct trace_buffer *buffer = trace_buffer_new();

	(void)state;
	trace_buffer_export(buffer, NULL, attributes);
	assert_null(exported); /* there was no run */
	trace_buffer_add(buffer, text_of("{\"event\":\"run\",\"run\":\"r\",\"parent\":null}"));
	trace_buffer_export(buffer, NULL, attributes);
	assert_string_equal(exported, "{\"event\":\"run\",\"run\":\"r\",\"parent\":null}\n"
				      "rlmd.custom_id=a");
	free(exported);
	trace_buffer_free(buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_of_it),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_export),
	};

	return cmocka_run_group_tests_name("trace_buffer", tests, NULL, NULL);
}
