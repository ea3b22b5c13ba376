#include "trace/lines.h"

#include <inttypes.h>
#include <rlmd/trace.h>
#include <string.h>

#include "base/json.h"

enum { EVENT_DEPTH_MAX = 32 };

/* Traces of before this was said are read as those of the first form. */
static bool check_format(const json_t *event, struct rlmd_error *err)
{
	int64_t format = json_get_integer(event, "formatVersion", TRACE_FORMAT);
	const char *program = json_get_string(event, "program");

	if (format <= TRACE_FORMAT)
		return true;
	return error_set(err, RLMD_ERROR_INPUT,
			 "a trace of form %" PRId64 ", written by %.64s; this is rlmd " RLMD_VERSION
			 ", which reads form %d: use a newer one",
			 format, *program ? program : "another program", TRACE_FORMAT);
}

bool lines_each(struct rlmd_text lines, lines_event_fn *fn, void *owner, struct rlmd_error *err)
{
	const char *stop, *at = lines.bytes, *end = lines.bytes + lines.size;
	struct rlmd_error bad = {0};

	for (size_t number = 1; (stop = memchr(at, '\n', (size_t)(end - at))); number++) {
		struct rlmd_text line = text_from(at, (size_t)(stop - at));
		struct rlmd_error error = {0};
		json_auto_t *event = json_read(line, EVENT_DEPTH_MAX, &error);

		if (bad.kind && json_get_integer(event, "seq", -1))
			break;
		if (!check_format(event, err))
			return error_context(err, "line %zu", number);
		if (event)
			fn(owner, event, line);
		else
			error_context(&error, "line %zu", number);
		bad = error;
		at = stop + 1;
	}
	if (bad.kind)
		return error_set(err, RLMD_ERROR_INPUT, "%s", bad.text);
	return true;
}

/* Where the last trace begins, of several in one file. */
struct last {
	const char *start;
};

static void on_any(void *owner, const json_t *event, struct rlmd_text line)
{
	struct last *last = owner;

	if (*json_get_string(event, "event") &&
	    (!last->start || !json_get_integer(event, "seq", -1)))
		last->start = line.bytes;
}

struct event_reader {
	rlmd_trace_event_fn *fn;
	void *owner;
};

static void on_last(void *owner, const json_t *event, struct rlmd_text line)
{
	struct event_reader *event_reader = owner;

	event_reader->fn(event_reader->owner, json_get_string(event, "event"), line);
}

bool rlmd_trace_events(struct rlmd_text lines, const char *name, rlmd_trace_event_fn *fn,
		       void *owner, struct rlmd_error *err)
{
	struct last last = {NULL};
	struct event_reader event_reader = {fn, owner};

	if (!fn || (lines.size && !lines.bytes))
		return error_set(err, RLMD_ERROR_USAGE, "a trace or its reader is NULL");
	lines = lines.bytes ? lines : text_of("");
	name = name ? name : "the trace";
	if (!lines_each(lines, on_any, &last, err))
		return error_context(err, "%s", name);
	if (!last.start)
		return error_set(err, RLMD_ERROR_INPUT, "%s is no trace: it has no event", name);
	return lines_each(text_slice(lines, (size_t)(last.start - lines.bytes), lines.size),
			  on_last, &event_reader, err);
}
