/*
 * review/omission.h - findings that are only counted: too unsure, ignored by a comment in the code,
 * or more than somebody wants to read.
 */
#pragma once

#include <stddef.h>

#include "review/finding.h"

struct omission_limits {
	double min_confidence; /* of a finding that is shown */
	size_t max;            /* new findings that are shown, the worst; 0: all */
};

/* Sets `omitted` of those that are not omitted yet; once all else is known of them. */
void omission_apply(struct findings *, const struct omission_limits *);
