/*
 * trace/trace.h - what happened in a run, told while it happens.
 *
 * Every event is one JSON object: "event", "seq", "ms" since the start, "run"
 * and what belongs to it (docs/trace.md lists them). A listener gets each at once and may write it
 * as a line, so that the file is whole whenever it is read; the specification's tree is built from
 * the same events (trace/tree.h). Most runs have no such reader: an event that nobody listens for
 * is only counted.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct trace;
struct tree;

enum trace_kind {
#define TRACE_EVENT(id, name) TRACE_##id,
#include "trace/events.def"
#undef TRACE_EVENT
	TRACE_KINDS
};

/* A set of kinds: bits, 1 << kind. */
typedef uint32_t trace_kinds;
_Static_assert(TRACE_KINDS <= 32, "a bit for each");

#define TRACE_ALL (UINT32_MAX >> (32 - TRACE_KINDS))

static inline trace_kinds trace_only(enum trace_kind kind)
{
	return (trace_kinds)1 << kind;
}

/* TRACE_KINDS: no event has this name. */
enum trace_kind trace_kind_of(const char *name);

typedef void trace_fn(void *owner, enum trace_kind, json_t *event); /* lent */

/* It is told of events of these kinds. `tree` keeps the specification's tree, too, which needs
 * kinds of its own. */
struct trace *trace_new(bool tree, trace_kinds, trace_fn *, void *owner);
void trace_free(struct trace *);

/* To be asked before an event is made. False: nobody listens for it; it has its number all the
 * same. */
bool trace_hears(struct trace *, enum trace_kind);

/* Milliseconds since the start, of clock_ms(). */
int64_t trace_ms(const struct trace *, int64_t clock);

/* Numbers the event, adds it to the tree and tells it; takes the reference. The first that is made
 * says which form of trace this is, of which program, and since when. */
void trace_event(struct trace *, enum trace_kind, json_t *event);

/* An event of a run: json_pack's format and arguments for the members beside event and run. */
void trace_run(struct trace *, enum trace_kind, const char *run, const char *fmt, ...);

/*
 * Foreign code may make calls and print texts without end. Whether the trace takes one more call;
 * and how many characters of a text, where it would have `max` of them at most.
 */
bool trace_admit_call(struct trace *);
int64_t trace_admit_text(struct trace *, struct rlmd_text, int64_t max);

json_t *trace_tree(const struct trace *); /* the root's, lent; NULL: none is kept yet */

/* 36 characters of a random UUID (RFC 4122, version 4) and a NUL. */
void trace_uuid(char out[static 37]);

/* The same of a text (version 8), for what has to have the same id again. */
void trace_uuid_of(struct rlmd_text, char out[static 37]);
