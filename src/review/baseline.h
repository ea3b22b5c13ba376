/*
 * review/baseline.h - which findings an earlier review had, by its SARIF file.
 *
 * A finding is known where its fingerprint is in that; or where its surroundings are those of one
 * whose own fingerprint is not found any more, which then has moved to another file. So what is
 * new beside something old and equal is still new.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "review/finding.h"

/* Names of "partialFingerprints" in a report. */
#define BASELINE_FINGERPRINT  "rlmdFinding/v1"
#define BASELINE_SURROUNDINGS "rlmdSurroundings/v1"

struct baseline {
	struct baseline_entry {
		char *fingerprint, *surroundings; /* owned; "" where there is none */
		bool used;
	} * entries; /* owned */
	size_t count;
};

/* RLMD_ERROR_INPUT where the file is no SARIF of version 2.1.0. */
bool baseline_read(const char *path, struct baseline *ret, struct rlmd_error *);
bool baseline_parse(struct rlmd_text sarif, struct baseline *ret, struct rlmd_error *);
void baseline_done(struct baseline *);

/* Sets `known` of all that are anchored. */
void baseline_apply(struct baseline *, struct findings *);
