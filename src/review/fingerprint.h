/*
 * review/fingerprint.h - what a finding is known by in later reviews, wherever its lines have
 * moved, whatever its rule is called, and though its quote is some lines wider or narrower.
 *
 * `fingerprint`, for services, is of the path, the longest of its lines and, where several findings
 * have both of that, which of them it is. `print`, for review/baseline.h, has the digest of each of
 * its lines and of the few around them. White space makes no difference to either. Lines without a
 * word, like "}", are left out; a finding of such lines alone has the one before them.
 */
#pragma once

#include "review/code.h"
#include "review/finding.h"

enum {
	PRINT_AROUND = 3, /* lines before and after */
	PRINT_LINES = 24, /* of a finding's own; of more the first */
};

/* Digests of lines, in their order. */
struct print {
	uint64_t lines[PRINT_AROUND + PRINT_LINES + PRINT_AROUND];
	bool alone[PRINT_AROUND + PRINT_LINES + PRINT_AROUND]; /* it stands once in its file */
	size_t count, first, end; /* those from `first` to before `end` are its own */
};

/* Of all that are anchored; the list is sorted. */
void fingerprint_all(struct code *, struct findings *);

/* Which of the lines of its file (code_prints()) are its own: from `ret_first` to before what is
 * returned. */
size_t fingerprint_own(struct code *, const struct finding *, size_t *ret_first);

/* "before|own|after", with commas between and "+" behind those that are alone; new. */
char *fingerprint_write(const struct print *);
bool fingerprint_read(struct rlmd_text, struct print *ret); /* false: it is none */

/* Its match among the lines of a file: the best one for its own lines and those around, the nearest
 * to `line` of several. */
struct print_match {
	bool found;
	bool sure;               /* by what is around it, not by a line that stands once */
	size_t own[PRINT_LINES]; /* where its own lines stand among code_prints() */
	size_t count;
};

struct print_match fingerprint_find(struct code *, const struct code_file *, const struct print *,
				    size_t line);
