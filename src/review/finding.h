/*
 * review/finding.h - findings as a model returns them.
 *
 *     {"findings": [{"rule", "severity": "error|warning|note", "confidence": 0..1, "message",
 *                    "path", "quote", "line" (a hint only), "patch" (a unified diff, or null)}]}
 *
 * review/submission.h reads them. Where they belong to is added afterwards: lines by
 * review/anchor.h, patches by review/patch.h, fingerprints by review/fingerprint.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"

struct code_file;
struct evbuffer;
struct print;

enum {
	FINDINGS_MAX = 5000,         /* of one answer: what the services take in */
	FINDING_RULE_MAX = 200,      /* bytes */
	FINDING_TEXT_MAX = 64 << 10, /* bytes of a message, a quote, a patch */
	FINDING_PATH_MAX = 4096,     /* bytes */
};

enum severity { SEVERITY_NONE, SEVERITY_NOTE, SEVERITY_WARNING, SEVERITY_ERROR };

/* "error"; static. */
const char *finding_severity_name(enum severity);
bool finding_severity_parse(struct rlmd_text name, enum severity *ret); /* "none", too */

enum finding_anchoring {
	FINDING_ANCHORED,
	FINDING_NO_FILE,      /* its path is none that was loaded */
	FINDING_NO_QUOTE,     /* its quote stands nowhere in that file */
	FINDING_NOT_TRIED,    /* too much had been looked for before it */
	FINDING_OUT_OF_SCOPE, /* its rule is not for that path */
};

/* So many lines from `line` on are replaced by other lines. */
struct patch_edit {
	size_t line, removed;
	struct evbuffer *added; /* owned: lines, each with its line feed */
};

/* Of one file, in the order of their lines. */
struct patch_file {
	const struct code_file *file; /* lent */
	struct patch_edit *edits;     /* owned */
	size_t count;
};

/* All that one suggested change does. */
struct patch {
	struct patch_file *files; /* owned; none without an edit */
	size_t count;
};

enum omission {
	OMITTED_NOT,
	OMITTED_UNCHANGED, /* none of its lines was changed, under --only-changed-lines */
	OMITTED_IGNORED,   /* a comment says so */
	OMITTED_UNSURE,    /* less than --min-confidence */
	OMITTED_SURPLUS,   /* beyond --max-findings */
	OMISSIONS
};

/* All texts are as the model wrote them. */
struct finding {
	char *rule, *message, *path, *quote; /* owned */
	char *named;                         /* owned: what it called a rule by; NULL: its id */
	char *patch;                         /* owned; NULL: none */
	struct patch *edits;                 /* owned: what that does; NULL likewise */
	char *no_patch;                      /* owned: why the one that was given was dropped */
	enum severity severity;
	double confidence;
	int64_t hint; /* the line that it named; 0: none */

	enum finding_anchoring anchoring;
	const struct code_file *file; /* lent; NULL: none was found */
	size_t first, last;           /* lines from 1 */
	size_t occurrences;           /* of the quote */
	bool in_change;               /* its lines were changed */
	bool by_change;               /* which chose between several places */
	size_t reports;               /* that were merged into it, itself included */
	enum omission omitted;        /* only counted */
	bool known;                   /* to the baseline */
	bool own_rule;                /* its rule is one of the user's own */
	char fingerprint[DIGEST_SIZE];
	struct print *print; /* owned: review/fingerprint.h; NULL: not anchored */
};

struct findings {
	struct finding *items; /* owned */
	size_t count;
};

void findings_done(struct findings *);

void finding_done(struct finding *);
void finding_edits_done(struct patch_file *);

/* By path and lines, and then by severity, the worst first; what is not anchored comes last. */
void findings_sort(struct findings *);

/*
 * Findings that say the same thing of the same lines become one. They do where the file is the
 * same, and both begin on the same line, or the lines of one lie within the few of the other; where
 * their rules are not the same, only if the one has at most three times as many lines, and not if
 * both are rules of one's own, which are told apart on purpose. Of those that have no lines, the
 * rule and the quote are the same. The worst severity, the highest confidence and the first patch
 * stay, and the rule and message of the most certain one; under another rule both messages.
 */
void findings_merge(struct findings *);
