/*
 * trace/spans.h - the events of a trace as spans of time: runs, turns, calls, blocks, functions.
 *
 * Other programs are given these (chrome.c, otlp.c). Times are milliseconds since the start of the
 * trace.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

enum span_kind {
	SPAN_RUN,      /* a run or a plan */
	SPAN_TURN,     /* the call of a model for a turn that was answered */
	SPAN_CALL,     /* any other call of a model */
	SPAN_BLOCK,    /* code */
	SPAN_FUNCTION, /* of the host's */
	SPAN_KINDS
};

struct span {
	enum span_kind kind;
	const char *run;           /* lent by the event: its own id, or that of the run it is of */
	const char *parent;        /* lent: of a run the one above; NULL: none, or another kind */
	size_t number;             /* in its run, of its kind, from 1 */
	size_t counts[SPAN_KINDS]; /* of a run: the spans that are of it, by kind */
	int64_t start, end;        /* ms */
	json_t *event;             /* owned: that tells of it; of a run the first */
	json_t *last; /* owned: of a run the last; NULL: it has not ended, or another kind */
};

struct spans {
	struct span *items; /* owned; runs before what is of them */
	size_t count;
	int64_t started; /* milliseconds since 1970 */
	int64_t end;     /* of the last event, ms */
	char *program;   /* owned: that wrote the trace, with its version */
	/* Lent: more attributes of the root, names and values in turn, ended by a NULL; or NULL. */
	const char *const *attributes;
	json_t *runs; /* owned: {id: index of its span} */
};

/* Of the last trace in the lines. `name` is for errors: RLMD_ERROR_INPUT as of rlmd_trace_events(),
 * and where it does not say when it began. To be ended with spans_done() in any case. */
bool spans_read(struct rlmd_text lines, const char *name, struct spans *, struct rlmd_error *);
void spans_done(struct spans *);

/* The kind of its error; NULL: it succeeded. */
const char *spans_error(const struct span *);

/* Its name for people: "run", "chat MODEL", "python", the function's. */
char *spans_name(const struct span *);
