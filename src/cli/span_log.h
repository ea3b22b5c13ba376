/* cli/span_log.h - the events of a run, for a collector of spans. */
#pragma once

#include <stdbool.h>

#include "base/text.h"

/* The collector is the one that OpenTelemetry's variables name (docs/trace.md). Events are kept
 * until the run is over: nothing is sent before, and no run waits. */
struct span_log;
struct span_log *span_log_new(void);                      /* NULL: no collector is named */
void span_log_add(struct span_log *, struct rlmd_text);   /* an event */
void span_log_send(struct span_log *, bool with_content); /* takes two seconds at most; a warning
							     where it fails */
void span_log_free(struct span_log *);
