/*
 * review/baseline.h - which findings an earlier review had, by its SARIF file.
 *
 * Where the earlier findings stand now is looked for first (review/fingerprint.h): in their own
 * files, then, of those that are nowhere there, in the files of new findings. A finding is known
 * where it has lines of one of these, whatever its rule; each earlier finding makes one known. So
 * what is new beside something old and equal is still new. The known one gets the rule and the
 * fingerprint of the earlier one, for which services may have an alert.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "review/fingerprint.h"

/* Names of "partialFingerprints" in a report. */
#define BASELINE_FINGERPRINT "rlmdFinding/v2"
#define BASELINE_PRINT       "rlmdLines/v1"

struct baseline {
	struct baseline_entry {
		char *rule, *name, *fingerprint; /* owned; `name`: of its file */
		size_t line;
		struct print print;
		const struct code_file *file; /* lent: where it stands now; NULL: nowhere */
		struct print_match match;
		bool used;
	} * entries; /* owned */
	size_t count;
};

/* RLMD_ERROR_INPUT where the file is no SARIF of version 2.1.0. */
bool baseline_read(const char *path, struct baseline *ret, struct rlmd_error *);
bool baseline_parse(struct rlmd_text sarif, struct baseline *ret, struct rlmd_error *);
void baseline_done(struct baseline *);

/* Sets `known` of all that are anchored and have their prints. */
void baseline_apply(struct baseline *, struct code *, struct findings *);
