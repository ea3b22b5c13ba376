/*
 * rlmd/review.h - reviews of code: a task for a model, and findings that point at real lines.
 *
 * A review is a task over a context of files whose answer is findings:
 *
 *     {"findings": [{"rule", "severity": "error|warning|note", "confidence": 0..1, "message",
 *                    "path", "quote", "line" (a hint only), "patch" (unified diff or null)}]}
 *
 *     review = rlmd_review_new(&options, &err);
 *     task = rlmd_review_task(review, context, &err);     of a job over `context`, whose hook
 *     wrong = rlmd_review_wrong(review, answer);          check() rejects what is no such object
 *     rlmd_review_take(review, context, answer, &err);
 *     report = rlmd_review_report(review, RLMD_REVIEW_SARIF, &size);
 *
 * Where each file is read first, the job has rlmd_review_first_code() and rlmd_review_function()
 * too.
 *
 * The quote of a finding decides where it belongs, never the line that the model named. Words of
 * the model and of files are escaped by the format of each report.
 */
#pragma once

#include <rlmd/function.h>
#include <rlmd/rlmd.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rlmd_context;
struct rlmd_review;

/* Whether each file, or each place that was changed, is first read by itself. A cache answers for
 * files that are as they were, however the model goes on. */
enum rlmd_review_reading {
	RLMD_REVIEW_NO_READING,
	RLMD_REVIEW_FIRST_READING, /* one question a file */
	RLMD_REVIEW_DEEP_READING,  /* with more around a change; and each finding is checked */
};

struct rlmd_review_options {
	size_t size;           /* sizeof(struct rlmd_review_options) */
	struct rlmd_text task; /* what the review looks for; empty: the usual */
	const char *prompt;    /* a prompt profile, or a directory with one; NULL: the usual one */
	const char *rules;     /* a directory of rules (rlmd-review(1)); NULL: none */
	const char *baseline;  /* a SARIF file of an earlier review, whose findings are known;
				  NULL: none */
	const char *fail_on;   /* "error", "warning", "note" or "none": the least severity that
				  fails the review; NULL: "error" */
	bool only_changed;     /* report only findings in changed lines */
	const char *directory; /* of the context: reports and patches name files relative to its
				  repository; NULL: relative to the context */
	bool usual_rules;      /* the usual rules too, beside `rules` */
	bool fail_on_unanchored; /* findings without a place, or that could not be read, fail the
				    review, too */
	double min_confidence;   /* 0 to 1: less certain findings are only counted */
	size_t max_findings;     /* new ones that are shown, the worst; 0: all */
	const char *category;    /* which of several reviews of one commit this is, for SARIF's
				    automationDetails.id; NULL: "rlmd/review" */
	struct rlmd_text about;  /* the author's description of the change, which is told as his
				    words; 20,000 characters of it; empty: none */
	enum rlmd_review_reading reading; /* other than none: rlmd_review_first_code() goes into the
					     job's options */
};

#define RLMD_REVIEW_OPTIONS_INIT RLMD_INIT(struct rlmd_review_options)

/*
 * Options are copied, files are read at once. NULL: RLMD_ERROR_USAGE for an unknown prompt or
 * level, RLMD_ERROR_INPUT for rules and a baseline that cannot be read.
 */
RLMD_API struct rlmd_review *rlmd_review_new(const struct rlmd_review_options *,
					     struct rlmd_error *);
RLMD_API void rlmd_review_free(struct rlmd_review *); /* NULL is fine */

/* Loads the files. The task for the job, lent until the next call or until the review is freed.
 * Empty: no file has changed, and no job is needed; take an answer without findings.
 * RLMD_ERROR_INPUT if the context has no files, RLMD_ERROR_USAGE for `only_changed` with a context
 * that was not compared. */
RLMD_API bool rlmd_review_task(struct rlmd_review *, struct rlmd_context *, struct rlmd_text *ret,
			       struct rlmd_error *);

/* The first reading, for the options `setup` and `first_code` of the job; after rlmd_review_task().
 * Lent until the review is freed. Empty: there is none. */
RLMD_API void rlmd_review_first_code(const struct rlmd_review *, struct rlmd_text *ret_setup,
				     struct rlmd_text *ret_code);

/* The function that the first reading calls, for the job's `functions`; the review is its owner. It
 * keeps the findings of the first reading for rlmd_review_spare(). */
RLMD_API struct rlmd_function rlmd_review_function(struct rlmd_review *);

/*
 * The mistakes in an answer, one a line, as text for the model; the caller frees it. NULL: there
 * are none, or none that are told. Those of single findings, and quotes that stand nowhere, are
 * told once in a review: the others are kept, and the next answer need not have them.
 */
RLMD_API char *rlmd_review_wrong(struct rlmd_review *, struct rlmd_text answer);

/* An answer that may be taken where the job ends without one: that of which single findings were
 * told back, or else the findings of a first reading that was carried to its end. Empty: there is
 * none. `ret_what` (or NULL) says in a sentence which it is. Both are lent until the next call. */
RLMD_API struct rlmd_text rlmd_review_spare(const struct rlmd_review *, const char **ret_what);

/* Takes the findings out of the answer, once, and those that were kept. Those that could not be
 * read are listed apart. RLMD_ERROR_SCHEMA if it is no object of findings. The context is
 * referenced. */
RLMD_API bool rlmd_review_take(struct rlmd_review *, struct rlmd_context *, struct rlmd_text answer,
			       struct rlmd_error *);

enum rlmd_review_format {
	RLMD_REVIEW_TEXT,     /* for people */
	RLMD_REVIEW_JSON,     /* all that is known of each finding, one object */
	RLMD_REVIEW_SARIF,    /* SARIF 2.1.0 */
	RLMD_REVIEW_JUNIT,    /* JUnit XML */
	RLMD_REVIEW_GITLAB,   /* GitLab Code Quality */
	RLMD_REVIEW_GITHUB,   /* workflow commands of GitHub, for standard output */
	RLMD_REVIEW_SUMMARY,  /* a step summary of GitHub */
	RLMD_REVIEW_MARKDOWN, /* Markdown */
	RLMD_REVIEW_RDJSON,   /* reviewdog's Diagnostic Format: new findings, with suggestions */
};

/* After rlmd_review_take(). NUL-terminated; the caller frees it. `ret_size` may be NULL. */
RLMD_API char *rlmd_review_report(const struct rlmd_review *, enum rlmd_review_format,
				  size_t *ret_size);

/* The number of new, anchored findings of the severity `fail_on` or above, and with
 * `fail_on_unanchored` of those without a place. 0: the review passed. */
RLMD_API size_t rlmd_review_failing(const struct rlmd_review *);

#ifdef __cplusplus
}
#endif
