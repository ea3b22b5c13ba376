/*
 * trace/tree.h - trace events, put together to the specification's ExecutionTrace.
 *
 * The same code serves a running engine and a trace file of a killed one, so
 * the two cannot differ. Values are shared with the events, not copied.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "trace/trace.h"

struct tree;

trace_kinds tree_kinds(void); /* of the events that it is made of */

struct tree *tree_new(void);
void tree_free(struct tree *);
void tree_feed(struct tree *, const json_t *event); /* lent; unknown events are passed over */
json_t *tree_root(const struct tree *);             /* lent; NULL before the root's "run" event */

/*
 * The tree of the last root run in a trace, new; `name` is for errors. A run's last line may have
 * been cut; any other bad line is RLMD_ERROR_INPUT with its number. A run without an end gets
 * answerSource "error", and the usage that its events add up to.
 */
json_t *tree_from_lines(struct rlmd_text lines, const char *name, struct rlmd_error *);
