/*
 * lister/teller.h - the answers of the program that lists files (source/lister.h).
 *
 * All of them wait until there is room, and end the process where nobody listens any more.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "lister/listing.h"

struct teller {
	int socket;   /* lent */
	size_t notes; /* of those that were told */
};

/* False where it cannot be told: more hunks than may be, or there is no memory for it. */
bool teller_entry(const struct teller *, const struct listing_entry *, struct rlmd_error *);
void teller_notes(struct teller *, const json_t *notes); /* those that are new */
void teller_failed(const struct teller *, const struct rlmd_error *);
void teller_end(const struct teller *);
