/*
 * review/report.h - what a review found, in the formats that services and people read.
 *
 * A report is a function over a view of the findings; review/reports.def lists them. Findings
 * without a place in the code, and those that the baseline knew, stand apart in each; omitted ones
 * (review/omission.h) are only counted. Changed files that were not loaded are told, too: by
 * what keeps a file out (a mark, a size, a NUL) nobody gets it past a review unseen.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "review/finding.h"
#include "review/ruleset.h"

struct evbuffer;
struct submission;

struct review_view {
	const struct findings *findings;     /* lent, sorted */
	const struct submission *submission; /* lent: what could not be read; NULL: all could */
	const struct ruleset *rules;         /* lent */
	const struct code *code;             /* lent */
	const char *category;                /* lent: which of several reviews of a commit it is */
	enum severity fail_on;
	bool with_baseline, fail_on_unanchored;
};

typedef void report_fn(const struct review_view *, struct evbuffer *out);

#define REPORT(name, ...) report_fn report_##name;
#include "review/reports.def"
#undef REPORT

enum {
	REPORT_SUMMARY_MAX = 1000000, /* bytes that a step summary of GitHub may have */
	REPORT_ANNOTATIONS = 10,      /* of each severity, that GitHub shows of a step */
};

/* Whether it is to be shown at its lines; without any; whether it is new there; whether the gate
 * fails of it. */
bool report_is_anchored(const struct finding *);
bool report_is_unanchored(const struct finding *);
bool report_is_new(const struct finding *);
bool report_fails(const struct review_view *, const struct finding *);

/* How many findings the gate fails of. */
size_t report_failing(const struct review_view *);

/* How many could not be read. */
size_t report_refused(const struct review_view *);

/* Its file as people know it; as the model named it where there is none. Lent. */
const char *report_name(const struct finding *);

/* "its quote stands nowhere in the file"; static. */
const char *report_why_unanchored(const struct finding *);

/* "line 12, which is the nearest of 3 places to line 14, which was named"; new, or NULL: only one
 * place was possible. */
char *report_choice(const struct finding *);

/* "2 errors, 1 warning and 3 notes; 1 more known to the baseline; ..." */
void report_tally(const struct review_view *, struct evbuffer *out);
