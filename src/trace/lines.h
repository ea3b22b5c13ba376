/*
 * trace/lines.h - the events of a trace, out of the lines of its file.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

/* The form that docs/trace.md and share/trace.schema.json describe: another number where a reader
 * of the last one would go wrong. */
enum { TRACE_FORMAT = 1 };

typedef void lines_event_fn(void *owner, const json_t *event, struct rlmd_text line); /* lent */

/*
 * Gives each event, with its line without the line feed. A bad line is forgiven where a run was
 * killed while it wrote it: at the end, without a line feed, and before the first event of the next
 * run that was told to append to the same file. Any other one is RLMD_ERROR_INPUT with its number,
 * and so is a trace of a newer form.
 */
bool lines_each(struct rlmd_text lines, lines_event_fn *, void *owner, struct rlmd_error *);
