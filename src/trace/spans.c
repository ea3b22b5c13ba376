#include "trace/spans.h"

#include <rlmd/trace.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/number.h"

enum { EVENT_DEPTH = 32 };

/* RFC 3339 in UTC, with milliseconds, as traces have it; -1: it is none. */
static int64_t read_date(const char *text)
{
	struct tm parts = {0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
	int64_t ms = 0;

	if (!rest || !strchr(".Z", *rest))
		return -1;
	if (*rest == '.')
		ms = strtol(rest + 1, NULL, 10);
	return (int64_t)timegm(&parts) * 1000 + ms;
}

static struct span *find_run(const struct spans *spans, const char *id)
{
	const json_t *at = json_object_get(spans->runs, id);

	return at ? &spans->items[json_integer_value(at)] : NULL;
}

static size_t number_of(const struct spans *spans, enum span_kind kind, const char *run)
{
	struct span *above = find_run(spans, run);

	return kind != SPAN_RUN && above ? ++above->counts[kind] : 1;
}

static void add(struct spans *spans, enum span_kind kind, json_t *event, int64_t start, int64_t end)
{
	const char *run = json_get_string(event, "run");
	struct span span = {
		.kind = kind,
		.run = run,
		.number = number_of(spans, kind, run),
		.start = int64_max(start, 0),
		.end = int64_max(end, int64_max(start, 0)),
		.event = json_incref(event),
	};

	if (kind == SPAN_RUN && json_object_get(event, "parent"))
		span.parent = json_string_value(json_object_get(event, "parent"));
	spans->items = array_grow(spans->items, spans->count, sizeof *spans->items);
	if (kind == SPAN_RUN)
		json_put(spans->runs, run, json_make_integer((json_int_t)spans->count));
	spans->items[spans->count++] = span;
}

/* From when it was sent, or, where that is not known, by its duration. */
static void add_timed(struct spans *spans, enum span_kind kind, json_t *event, int64_t ms)
{
	int64_t duration = json_get_integer(event, "duration", 0);
	int64_t start = json_get_integer(event, "startedMs", ms - duration);

	add(spans, kind, event, start, int64_min(start + duration, ms));
}

static void end_run(struct spans *spans, json_t *event, int64_t ms)
{
	struct span *run = find_run(spans, json_get_string(event, "run"));

	if (!run || run->last)
		return;
	run->last = json_incref(event);
	run->end = int64_max(run->start, ms);
}

struct span_reader {
	struct spans *spans;
	bool begun;
};

static void begin(struct spans *spans, const json_t *event)
{
	spans->started = read_date(json_get_string(event, "startedAt"));
	spans->program = xstrdup(json_get_string(event, "program"));
}

/* A block's own plan has the id of its run, which is there already. */
static bool is_plan(const struct spans *spans, const char *name, const json_t *event)
{
	return !strcmp(name, "plan_start") && !find_run(spans, json_get_string(event, "run"));
}

static bool ends_plan(const struct spans *spans, const char *name, const json_t *event)
{
	const struct span *run = find_run(spans, json_get_string(event, "run"));

	return !strcmp(name, "plan_end") && run &&
	       !strcmp(json_get_string(run->event, "event"), "plan_start");
}

static void on_event(void *owner, const char *name, struct rlmd_text line)
{
	static const struct {
		const char *name;
		enum span_kind kind;
	} timed[] = {
		{"response", SPAN_TURN},       {"llm_call", SPAN_CALL},     {"code", SPAN_BLOCK},
		{"demonstration", SPAN_BLOCK}, {"function", SPAN_FUNCTION},
	};
	struct span_reader *reader = owner;
	struct spans *spans = reader->spans;
	json_auto_t *event = json_read(line, EVENT_DEPTH, NULL);
	int64_t ms = json_get_integer(event, "ms", 0);

	if (!event || !strcmp(name, "result"))
		return;
	if (!reader->begun)
		begin(spans, event);
	reader->begun = true;
	spans->end = int64_max(spans->end, ms);
	if (!strcmp(name, "run") || is_plan(spans, name, event))
		add(spans, SPAN_RUN, event, ms, ms);
	else if (!strcmp(name, "end") || ends_plan(spans, name, event))
		end_run(spans, event, ms);
	for (size_t i = 0; i < sizeof timed / sizeof *timed; i++)
		if (!strcmp(name, timed[i].name))
			add_timed(spans, timed[i].kind, event, ms);
}

bool spans_read(struct rlmd_text lines, const char *name, struct spans *spans,
		struct rlmd_error *err)
{
	struct span_reader reader = {.spans = spans};

	*spans = (struct spans){.started = -1, .runs = json_make_object()};
	if (!rlmd_trace_events(lines, name, on_event, &reader, err))
		return false;
	if (spans->started < 0)
		return error_set(
			err, RLMD_ERROR_INPUT,
			"%s does not say when its run began: an earlier version of rlmd wrote "
			"it",
			name);
	for (size_t i = 0; i < spans->count; i++)
		if (spans->items[i].kind == SPAN_RUN && !spans->items[i].last)
			spans->items[i].end = spans->end;
	return true;
}

void spans_done(struct spans *spans)
{
	for (size_t i = 0; i < spans->count; i++) {
		json_decref(spans->items[i].event);
		json_decref(spans->items[i].last);
	}
	free(spans->items);
	free(spans->program);
	json_decref(spans->runs);
}

const char *spans_error(const struct span *span)
{
	const json_t *error = json_object_get(span->kind == SPAN_RUN ? span->last : span->event,
					      "error");

	if (span->kind == SPAN_RUN && !span->last)
		return "killed";
	if (json_is_object(error))
		return json_get_string(error, "kind");
	if (json_is_string(error)) /* the traceback of a block; the name of a kind */
		return span->kind == SPAN_BLOCK ? "exception" : json_string_value(error);
	return NULL;
}

char *spans_name(const struct span *span)
{
	switch (span->kind) {
	case SPAN_RUN:
		return xstrdup(*json_get_string(span->event, "model") ? "run" : "plan");
	case SPAN_TURN:
	case SPAN_CALL:
		return xasprintf("chat %s", json_get_string(span->event, "model"));
	case SPAN_BLOCK:
		break;
	case SPAN_FUNCTION:
		return xstrdup(json_get_string(span->event, "name"));
	case SPAN_KINDS:
		break;
	}
	return xstrdup("python");
}
