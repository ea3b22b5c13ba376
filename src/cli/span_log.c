#include "cli/span_log.h"

#include <event2/buffer.h>
#include <rlmd/trace.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/tell.h"
#include "cli/trace_export.h"

enum {
	LOG_MAX = 64 << 20, /* bytes of events that are kept for a collector */
	SEND_MS = 2000,
};

struct span_log {
	struct evbuffer *lines; /* owned */
	bool full;
};

struct span_log *span_log_new(void)
{
	struct span_log *log;

	if (!trace_export_environment().url)
		return NULL;
	log = xcalloc(1, sizeof *log);
	log->lines = buffer_new();
	return log;
}

void span_log_free(struct span_log *log)
{
	if (!log)
		return;
	evbuffer_free(log->lines);
	free(log);
}

/* Events that have no room are dropped, and so is what they would have told. */
void span_log_add(struct span_log *log, struct rlmd_text event)
{
	if (!log || log->full)
		return;
	log->full = evbuffer_get_length(log->lines) + event.size > LOG_MAX;
	if (log->full)
		return;
	buffer_add(log->lines, event.bytes, event.size);
	buffer_add(log->lines, "\n", 1);
}

struct rlmd_span_exporter *span_log_exporter(struct event_base *base, bool with_content)
{
	struct rlmd_otlp_options options = trace_export_environment();
	struct rlmd_span_exporter *exporter;
	struct rlmd_error err;

	if (!options.url)
		return NULL;
	options.content = with_content;
	exporter = rlmd_span_exporter_new(base, &options, &err);
	if (!exporter)
		tell_warning("no spans are sent: %s", err.text);
	return exporter;
}

static void tell_lost(size_t sent, size_t all, const struct rlmd_error *err)
{
	tell_warning("%zu of %zu spans did not reach the collector: %s", all - sent, all,
		     err->text);
}

void span_log_flush(struct rlmd_span_exporter *exporter)
{
	size_t sent = 0, all = 0;
	struct rlmd_error err;

	if (!exporter)
		return;
	rlmd_span_exporter_flush(exporter, SEND_MS);
	if (!rlmd_span_exporter_result(exporter, &sent, &all, &err))
		tell_lost(sent, all, &err);
}

void span_log_send(struct span_log *log, bool with_content)
{
	struct rlmd_otlp_options options = trace_export_environment();
	struct rlmd_error err = {0};
	size_t sent = 0, all = 0;

	if (!log || !evbuffer_get_length(log->lines))
		return;
	options.content = with_content;
	options.time_ms = SEND_MS;
	if (!rlmd_trace_push(text_in(log->lines), "the trace", &options, &sent, &all, &err))
		tell_lost(sent, all, &err);
	else if (log->full)
		tell_warning("the collector has no spans of what came after %d MiB of events",
			     LOG_MAX >> 20);
}
