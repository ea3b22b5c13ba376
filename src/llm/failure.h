/*
 * llm/failure.h - what a provider's error means, and what to do about it.
 *
 * The table of classes and phrases; pure. Sources: the error pages of the
 * providers and the retry rules of their official SDKs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "llm/room.h"

struct failure {
	enum rlmd_error_kind kind;
	bool retry; /* the same request may succeed later */
	/* The reason why the model is busy, where that may take minutes and then be over: "it is
	 * being loaded". Static; NULL: nothing of that kind. */
	const char *busy;
	unsigned quirk;    /* enum adapter_quirk: adapt by this and retry once; 0: none */
	struct room room;  /* the sizes that it told, of a request that was too large */
	char message[256]; /* the provider's own words, escaped; never more than it sent */
};

/* An answer whose status is not 200. `body` may be anything: JSON of any provider, HTML, nothing.
 */
void failure_of_status(int status, struct rlmd_text body, struct failure *ret);

/* An error object inside a stream or a body that came with status 200. */
void failure_of_body(struct rlmd_text body, struct failure *ret);

/* Whether what failed so may succeed later; where nobody said it of this failure. */
bool failure_passes(enum rlmd_error_kind kind);

/* The reason why a provider is busy that failed so, as in struct failure; NULL: none. */
const char *failure_busy(enum rlmd_error_kind kind, int status);

/* Advice to a person, to follow the provider's words: "; check ...", or "". */
const char *failure_advice(enum rlmd_error_kind kind);
