/*
 * source/skipped.h - what is left out of a directory: by kind how many, with the names of the
 * first, and each by its name.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
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
	SKIP_IGNORED,
	SKIP_OUTPUTS, /* of a notebook, whose other lines are taken */
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
	json_t *all; /* owned: of each "path" and "reason"; NULL: nothing */
};

/* Why a listed entry is left out that is no file to be taken. */
enum skip skipped_kind(enum listing_kind);

void skipped_add(struct skipped *, enum skip, const char *label, const char *why); /* or NULL */

/* A sentence of each kind for `notes`, with names, and for `left_out`, owned, a phrase without;
 * what follows is counted anew. */
void skipped_tell(struct skipped *, const char *directory, json_t *notes, char **left_out);
void skipped_done(struct skipped *);

/* One of such a list: its path is lent by it, the reason is static. False: there is no such index.
 */
bool skipped_get(const json_t *all, size_t index, const char **ret_path, const char **ret_reason);
