/*
 * cli/review_reports.h - where the reports of a review go: files, and the step summary of GitHub.
 */
#pragma once

#include <rlmd/review.h>
#include <stdbool.h>

#include "base/error.h"
#include "cli/config.h"

enum { REVIEW_FILES = 4 };

/* Zero before review_reports_open(). */
struct review_reports {
	struct sink *sinks[REVIEW_FILES]; /* owned; NULL: not asked for */
};

/* Opens the files, so that one that cannot be written is known before anything is paid for. */
bool review_reports_open(struct review_reports *, const struct config *, struct rlmd_error *);

/* Writes all of them. The step summary's failure is only warned of. */
bool review_reports_write(struct review_reports *, const struct config *,
			  const struct rlmd_review *, struct rlmd_error *);
void review_reports_done(struct review_reports *); /* what was not written is gone */
