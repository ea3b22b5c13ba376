/*
 * cli/trace_view.h - a run's tree as people read it: turns, code, outputs, calls
 * and sub-runs, with what each cost and how long it took.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct evbuffer;

/*
 * Appends the tree (trace/tree.h) as indented lines. Without `whole` a text shows its first lines,
 * and how many more it has. Nothing is escaped: whoever shows it on a terminal does that.
 */
void trace_view_write(const json_t *tree, bool whole, struct evbuffer *out);
