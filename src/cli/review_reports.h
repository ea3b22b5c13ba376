/*
 * cli/review_reports.h - the files that a review writes beside its output, all of them or none.
 *
 * Each is opened before the review begins, for one that cannot be written is to be known before
 * anything is paid. With --github the step summary is one more.
 */
#pragma once

#include <rlmd/review.h>

#include "cli/config.h"

struct review_reports;

/* Those that the settings name, which are lent. NULL: RLMD_ERROR_USAGE names the option of one that
 * cannot be written, or is another report's file or the output. */
struct review_reports *review_reports_new(const struct config *, struct rlmd_error *);
void review_reports_free(struct review_reports *); /* NULL is fine */

/* Once, after rlmd_review_take(). No file appears before all are written. A step summary that
 * cannot be written is only warned of. RLMD_ERROR_INTERNAL. */
bool review_reports_write(struct review_reports *, const struct rlmd_review *, struct rlmd_error *);
