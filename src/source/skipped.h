/*
 * source/skipped.h - what is left out of a directory, by kind: how many, and the names of the
 * first.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "source/lister.h"

enum skip {
	SKIP_SECRET,
	SKIP_BINARY,
	SKIP_SPECIAL,
	SKIP_LINK,
	SKIP_UNREADABLE,
	SKIP_UNRULED,
	SKIP_GENERATED,
	SKIP_VENDORED,
	SKIP_SUBMODULE,
	SKIP_LARGE,
	SKIP_MISSING, /* by the list of names */
	SENT_SECRET,  /* not skipped at all */
	SKIP_KINDS
};

/* Embedded; zero: nothing yet. */
struct skipped {
	struct {
		size_t count;
		char *names; /* owned: ready to be shown */
	} of[SKIP_KINDS];
};

/* Why a listed entry is left out that is no file to be taken. */
enum skip skipped_kind(enum listing_kind);

void skipped_add(struct skipped *, enum skip, const char *label, const char *why); /* or NULL */

/* A sentence of each kind for `notes`, with names, and for `left_out`, owned, a phrase without;
 * what follows is counted anew. */
void skipped_tell(struct skipped *, const char *directory, json_t *notes, char **left_out);
void skipped_done(struct skipped *);
