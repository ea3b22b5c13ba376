/* A trace for the viewers of Chrome's trace event format (Perfetto, about:tracing), rlmd/trace.h.
 * Source: "Trace Event Format" of the Chromium project. Each span is a complete event ("X"), in
 * microseconds; spans that overlap without one holding the other are in rows of their own. */
#include <rlmd/trace.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "trace/spans.h"

enum { US = 1000, NESTED_MAX = 64 };

/* The spans of one row that are open, from the outermost on. */
struct row {
	int64_t ends[NESTED_MAX];
	size_t open;
};

static int compare(const void *a, const void *b)
{
	const struct span *one = *(const struct span *const *)a;
	const struct span *two = *(const struct span *const *)b;

	if (one->start != two->start)
		return one->start < two->start ? -1 : 1;
	if (one->end != two->end)
		return one->end > two->end ? -1 : 1;
	return one < two ? -1 : one > two;
}

/* The first row in which it is after, or inside of, all that is open. */
static size_t row_of(struct row **rows, size_t *count, const struct span *span)
{
	struct row *row;

	for (size_t i = 0; i < *count; i++) {
		row = &(*rows)[i];
		while (row->open && row->ends[row->open - 1] <= span->start)
			row->open--;
		if (row->open < NESTED_MAX &&
		    (!row->open || row->ends[row->open - 1] >= span->end)) {
			row->ends[row->open++] = span->end;
			return i;
		}
	}
	*rows = array_grow(*rows, *count, sizeof **rows);
	row = &(*rows)[(*count)++];
	*row = (struct row){.ends = {span->end}, .open = 1};
	return *count - 1;
}

static json_t *arguments(const struct span *span)
{
	static const char *const members[] = {
		"index", "depth",    "kind",         "provider", "inputTokens", "outputTokens",
		"cost",  "queuedMs", "cachedTokens", "cached",   "reason",      "stopReason"};
	json_t *object = json_make("{s:s}", "run", span->run);
	const char *error = spans_error(span);

	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		json_t *value = json_object_get(span->event, members[i]);

		if (value && !json_is_null(value))
			json_put(object, members[i], json_incref(value));
	}
	if (error)
		json_put(object, "error", json_make_string(error));
	return object;
}

static json_t *event_of(const struct span *span, size_t row)
{
	static const char *const kinds[] = {
		[SPAN_RUN] = "run",     [SPAN_TURN] = "turn",         [SPAN_CALL] = "call",
		[SPAN_BLOCK] = "block", [SPAN_FUNCTION] = "function",
	};
	auto_free char *name = spans_name(span);

	return json_make("{s:s, s:s, s:s, s:I, s:I, s:i, s:I, s:o}", "name", name, "cat",
			 kinds[span->kind], "ph", "X", "ts", (json_int_t)span->start * US, "dur",
			 (json_int_t)(span->end - span->start) * US, "pid", 1, "tid",
			 (json_int_t)row + 1, "args", arguments(span));
}

static void write_all(const struct spans *spans, struct evbuffer *out)
{
	auto_free const struct span **sorted = xcalloc(spans->count + 1, sizeof *sorted);
	auto_free struct row *rows = NULL;
	json_auto_t *events = json_make_array();
	json_auto_t *object = NULL;
	size_t count = 0;

	for (size_t i = 0; i < spans->count; i++)
		sorted[i] = &spans->items[i];
	qsort(sorted, spans->count, sizeof *sorted, compare);
	for (size_t i = 0; i < spans->count; i++)
		json_append(events, event_of(sorted[i], row_of(&rows, &count, sorted[i])));
	object = json_make("{s:O, s:s, s:{s:s}}", "traceEvents", events, "displayTimeUnit", "ms",
			   "otherData", "program", spans->program);
	json_write_line(object, out);
}

char *rlmd_trace_chrome(struct rlmd_text lines, const char *name, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	struct spans spans;
	bool ok = spans_read(lines, name, &spans, err);

	if (ok)
		write_all(&spans, out);
	spans_done(&spans);
	return ok ? text_drain(out, NULL) : NULL;
}
