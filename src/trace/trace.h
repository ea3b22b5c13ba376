/*
 * trace/trace.h - what happened in a run, told while it happens.
 *
 * Every event is one JSON object: "event", "seq", "ms" since the start, "run"
 * and what belongs to it (docs/trace.md lists them). Whoever listens gets each
 * at once and may write it as a line, so that the file is whole whenever it is
 * read; the specification's tree is built from the same events (trace/tree.h).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct trace;
struct tree;

typedef void trace_fn(void *owner, json_t *event); /* lent */

/* `tree` keeps the specification's tree of it, too. */
struct trace *trace_new(bool tree, trace_fn *, void *owner);
void trace_free(struct trace *);

/* Numbers the event, adds it to the tree and tells it; takes the reference. */
void trace_event(struct trace *, json_t *event);

/* An event of a run: json_pack's format and arguments for the members beside event and run. */
void trace_run(struct trace *, const char *event, const char *run, const char *fmt, ...);

/*
 * Foreign code may make calls and print texts without end. Whether the trace takes one more call;
 * and how many characters of a text, where it would have `max` of them at most.
 */
bool trace_admit_call(struct trace *);
int64_t trace_admit_text(struct trace *, struct rlmd_text, int64_t max);

json_t *trace_tree(const struct trace *); /* the root's tree, lent; NULL before it began */

/* 36 characters of a random UUID (RFC 4122, version 4) and a NUL. */
void trace_uuid(char out[static 37]);
