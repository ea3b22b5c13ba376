/*
 * llm/warnings.h - what somebody should be warned of, each text once.
 *
 * Whoever asks models has one, and hears of what concerns the own calls; texts name models, which
 * are named by foreign code, so there are so many at most.
 */
#pragma once

#include <jansson.h>

/* Embed it. */
struct warnings {
	json_t *fresh; /* owned: an array, not taken yet */
	json_t *told;  /* owned: all texts so far, as keys */
};

void warnings_init(struct warnings *);
void warnings_done(struct warnings *); /* of a zeroed one too */

void warnings_add(struct warnings *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Those that nobody took, as a new array of strings. */
json_t *warnings_take(struct warnings *);
