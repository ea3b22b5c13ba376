/* cli/trace_export.h - a trace for other programs: Chrome's viewers, OpenTelemetry. */
#pragma once

#include <rlmd/trace.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/config.h"

/* As --chrome and --otlp want it: written, printed, or sent. RLMD_ERROR_INPUT, RLMD_ERROR_USAGE
 * (sink_new(), rlmd_trace_push()), and the other errors of sending. */
bool trace_export(struct rlmd_text lines, const char *name, const struct config *,
		  struct rlmd_error *);

/* How spans are made and where they go, by OpenTelemetry's variables; lent by the environment.
 * `url` is NULL where none of them names a collector. */
struct rlmd_otlp_options trace_export_environment(void);
