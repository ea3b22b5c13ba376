#include "batch/trace_buffer.h"

#include <inttypes.h>
#include <rlmd/trace.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json_quote.h"
#include "base/json_scan.h"
#include "base/text.h"
#include "batch/id_map.h"

struct event_line {
	TAILQ_ENTRY(event_line) next;
	size_t size;
	char bytes[];
};

TAILQ_HEAD(event_lines, event_line);

struct trace_buffer {
	struct event_lines first, last; /* owned */
	size_t first_size, last_size;
	uint64_t left_out, left_out_bytes; /* between the two */
};

/* The members of an event's line that say where it belongs. */
struct belonging {
	char *event, *run, *parent; /* owned; NULL: it says none */
};

struct trace_buffer *trace_buffer_new(void)
{
	struct trace_buffer *buffer = xcalloc(1, sizeof *buffer);

	TAILQ_INIT(&buffer->first);
	TAILQ_INIT(&buffer->last);
	return buffer;
}

static void free_first(struct event_lines *lines)
{
	struct event_line *line = TAILQ_FIRST(lines);

	TAILQ_REMOVE(lines, line, next);
	free(line);
}

void trace_buffer_free(struct trace_buffer *buffer)
{
	if (!buffer)
		return;
	while (!TAILQ_EMPTY(&buffer->first))
		free_first(&buffer->first);
	while (!TAILQ_EMPTY(&buffer->last))
		free_first(&buffer->last);
	free(buffer);
}

static void leave_out(struct trace_buffer *buffer, size_t size)
{
	buffer->left_out++;
	buffer->left_out_bytes += size;
}

static void add(struct event_lines *lines, struct rlmd_text text)
{
	struct event_line *line = xcalloc(1, sizeof *line + text.size);

	line->size = text.size;
	memcpy(line->bytes, text.bytes, text.size);
	TAILQ_INSERT_TAIL(lines, line, next);
}

static bool is_beginning(const struct trace_buffer *buffer, size_t size)
{
	return TAILQ_EMPTY(&buffer->first) || (TAILQ_EMPTY(&buffer->last) && !buffer->left_out &&
					       buffer->first_size + size <= TRACE_BUFFER_FIRST);
}

void trace_buffer_add(struct trace_buffer *buffer, struct rlmd_text line)
{
	if (is_beginning(buffer, line.size)) {
		add(&buffer->first, line);
		buffer->first_size += line.size;
		return;
	}
	if (line.size > TRACE_BUFFER_LAST) {
		leave_out(buffer, line.size);
		return;
	}
	add(&buffer->last, line);
	buffer->last_size += line.size;
	while (buffer->last_size > TRACE_BUFFER_LAST) {
		size_t size = TAILQ_FIRST(&buffer->last)->size;

		buffer->last_size -= size;
		leave_out(buffer, size);
		free_first(&buffer->last);
	}
}

/* --- what is shown -------------------------------------------------------------------- */

static char *string_in(const struct json_view *view)
{
	auto_free char *owned = NULL;

	return view->kind == JSON_VIEW_STRING ? text_copy(json_view_text(view, &owned)) : NULL;
}

static struct belonging belonging_of(const struct event_line *line)
{
	static const struct json_scan_bounds bounds = {.depth = JSON_SCAN_DEPTH,
						       .any_number = true};
	static const struct json_scan_field fields[] = {{.name = "event", .view = 0},
							{.name = "run", .view = 1},
							{.name = "parent", .view = 2},
							{0}};
	struct json_view views[3] = {0};
	struct rlmd_error err;

	if (!json_scan_fields(text_from(line->bytes, line->size), &bounds, fields, views, 3, &err))
		return (struct belonging){0};
	return (struct belonging){string_in(&views[0]), string_in(&views[1]), string_in(&views[2])};
}

/* A sub-run without its parent would be taken for the root, and an event without its run is
 * nobody's. */
static bool belongs(struct id_map *runs, const struct belonging *to)
{
	if (!to->event || !to->run)
		return false;
	if (strcmp(to->event, "run"))
		return id_map_find(runs, to->run);
	if (to->parent && !id_map_find(runs, to->parent))
		return false;
	id_map_add(runs, to->run, NULL);
	return true;
}

static void write_line(struct id_map *runs, const struct event_line *line, struct evbuffer *out)
{
	struct belonging to = belonging_of(line);

	if (belongs(runs, &to)) {
		buffer_add(out, line->bytes, line->size);
		buffer_add(out, "\n", 1);
	}
	free(to.event);
	free(to.run);
	free(to.parent);
}

static void write_gap(const struct trace_buffer *buffer, struct evbuffer *out)
{
	const struct event_line *first = TAILQ_FIRST(&buffer->first);
	struct belonging to;

	if (!buffer->left_out)
		return;
	to = belonging_of(first);
	buffer_add_printf(out, "{\"event\":\"warning\",\"run\":");
	json_quote(text_of(to.run), out);
	buffer_add_printf(
		out, ",\"text\":\"%" PRIu64 " events of %" PRIu64 " bytes are left out here\"}\n",
		buffer->left_out, buffer->left_out_bytes);
	free(to.event);
	free(to.run);
	free(to.parent);
}

void trace_buffer_write(const struct trace_buffer *buffer, struct evbuffer *out)
{
	struct id_map *runs = id_map_new();
	const struct event_line *line;

	TAILQ_FOREACH (line, &buffer->first, next)
		write_line(runs, line, out);
	write_gap(buffer, out);
	TAILQ_FOREACH (line, &buffer->last, next)
		write_line(runs, line, out);
	id_map_free(runs);
}

void trace_buffer_export(const struct trace_buffer *buffer, struct rlmd_span_exporter *exporter,
			 const char *const *attributes)
{
	auto_evbuffer struct evbuffer *lines = buffer_new();

	if (TAILQ_EMPTY(&buffer->first))
		return;
	trace_buffer_write(buffer, lines);
	rlmd_span_exporter_add(exporter, text_in(lines), attributes);
}
