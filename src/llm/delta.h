/*
 * llm/delta.h - a reply as it comes, piece by piece, to whoever wants to see it grow.
 *
 * The pieces together are the reply that is handed over at its end. The provider's key is replaced
 * in them as it is there, so some bytes at the end are kept until it is certain that they begin
 * none, and no character is cut.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "llm/llm.h"

/* Embed it; zero is the beginning. NULL `fn`: nobody wants to see it. */
struct delta {
	llm_delta_fn *fn;
	void *owner;     /* lent */
	const char *key; /* lent; or NULL */
	size_t told;     /* bytes of the reply */
};

/* More of it is there, or, `whole`, all. */
void delta_tell(struct delta *, struct rlmd_text reply, bool whole);

/* It begins again: what came of it is void. */
void delta_again(struct delta *);
