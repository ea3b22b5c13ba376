/*
 * rlmd/trace.h - puts the tree of runs together from a trace.
 *
 * A trace is lines of JSON, one an event, as the hook `event` of a job gets them
 * (docs/trace.md in the source). It may end anywhere, if its run was killed.
 */
#pragma once

#include <rlmd/rlmd.h>

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

#ifdef __cplusplus
}
#endif
