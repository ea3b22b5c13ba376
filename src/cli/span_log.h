/* cli/span_log.h - the events of runs, for a collector of spans. */
#pragma once

#include <stdbool.h>

#include "base/text.h"

struct event_base;
struct rlmd_span_exporter;

/* The collector is the one that OpenTelemetry's variables name (docs/trace.md). Events are kept
 * until the run is over: nothing is sent before, and no run waits. */
struct span_log;
struct span_log *span_log_new(void);                      /* NULL: no collector is named */
void span_log_add(struct span_log *, struct rlmd_text);   /* an event */
void span_log_send(struct span_log *, bool with_content); /* takes two seconds at most; a warning
							     where it fails */
void span_log_free(struct span_log *);

/* Of a command with many jobs: to that collector each one's spans go at its end. Owned; NULL: none
 * is named, or a warning says why it cannot be asked. */
struct rlmd_span_exporter *span_log_exporter(struct event_base *, bool with_content);
void span_log_flush(struct rlmd_span_exporter *); /* the same; NULL is fine */
