/*
 * review/submission.h - the findings of an answer, one by one.
 *
 * One odd member costs no other finding: what can only mean one thing is put right ("51" for a
 * line, "high" for a severity, "90%" for a confidence), and a finding that says too little is
 * refused alone, with the reason.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "review/finding.h"
#include "review/ruleset.h"

struct evbuffer;

/* A finding that could not be read. */
struct refusal {
	size_t index; /* of it in the answer */
	char *shown;  /* owned: the beginning of it, as JSON */
	char *why;    /* owned: a line for each thing to mend: its member, a colon, the reason */
};

struct submission {
	struct findings findings;
	size_t *indexes;          /* owned: of each of these in the answer */
	struct refusal *refusals; /* owned */
	size_t refusal_count;
};

/* False: the answer is no such object, and `wrong` gets a line that says why, for the model. */
bool submission_read(struct rlmd_text answer, const struct ruleset *, struct submission *ret,
		     struct evbuffer *wrong);
void submission_done(struct submission *);
