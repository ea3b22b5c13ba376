/*
 * cli/output.h - what a run gives its user: the answer, the result object, or
 * events and then the result; and the trace beside it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

enum output_form {
	OUTPUT_ANSWER, /* the answer and a line feed */
	OUTPUT_REPORT, /* likewise, of an answer of ours, that has a job's commands on purpose */
	OUTPUT_JSON,   /* the result object */
	OUTPUT_JSONL,  /* events, the last of them the result */
};

struct output;

/* `path` NULL: standard output; `trace` NULL: none. Both are opened at once, so that what cannot
 * be written is known before anything is paid for. */
struct output *output_new(enum output_form, const char *path, const char *trace,
			  struct rlmd_error *);
void output_free(struct output *); /* NULL is fine */

/* Whether anybody reads events. */
bool output_has_events(const struct output *);

/* Whether this is the last event, which has the result. */
bool output_is_result(struct rlmd_text event);

/* False where the output failed; a trace that fails is warned of once and then left alone. A
 * reader who takes nothing for half a minute counts as a failure in both, for the run waits. */
bool output_event(struct output *, struct rlmd_text event, struct rlmd_error *);

/* The end. `object` is the result object; `answer` has no bytes (NULL) where there is none. A
 * result that no event has told is told as one. */
bool output_result(struct output *, json_t *object, struct rlmd_text answer, struct rlmd_error *);

/* Any other text, escaped for a terminal, and for the log of a CI service's job; then the file is
 * put in its place. */
bool output_text(struct output *, struct rlmd_text, struct rlmd_error *);
bool output_commit(struct output *, struct rlmd_error *);

/* After a failure: whoever was to read it has gone, and need not be told. */
bool output_reader_gone(const struct output *);
