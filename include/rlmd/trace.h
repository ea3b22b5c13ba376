/*
 * rlmd/trace.h - reads a trace: its events, and the tree of runs that they make.
 *
 * A trace is lines of JSON, one an event, as the hook `event` of a job gets them
 * (docs/trace.md in the source). It may end anywhere, if its run was killed.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The tree of the last root run in the lines: a JSON object as the member `trace` of a result, new;
 * the caller frees it. A last line that was cut is passed over. A run without an end has the
 * answerSource "error" and the usage that its events add up to. `name` is for errors, or NULL.
 * NULL and RLMD_ERROR_INPUT if a line is not of a trace; the text has its number.
 */
RLMD_API char *rlmd_trace_tree(struct rlmd_text lines, const char *name, struct rlmd_error *);

/* An event: its name, and its line of JSON without the line feed; both lent. */
typedef void rlmd_trace_event_fn(void *owner, const char *event, struct rlmd_text line);

/*
 * The events of the last trace in the lines, each once and in their order. Lines that were cut are
 * passed over, as above. False and RLMD_ERROR_INPUT if a line is not of a trace, before any event
 * is given, or if there is none; RLMD_ERROR_USAGE for a function that is NULL.
 */
RLMD_API bool rlmd_trace_events(struct rlmd_text lines, const char *name, rlmd_trace_event_fn *,
				void *owner, struct rlmd_error *);

#ifdef __cplusplus
}
#endif
