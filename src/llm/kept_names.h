/*
 * llm/kept_names.h - the names under which exchanges are kept, and found again.
 *
 * ID-PLACE-N.json: the request's hash, the hash of who asked it (llm_request.place), and how often
 * it had asked that before. So each of several runs that ask the same at once is given its own
 * answer again, whichever comes first. Where nobody has asked it from there, any answer to the same
 * request will do that is not taken yet: code whose threads call at once is another place each
 * time.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "llm/llm.h"

/* Embed it; zero holds nothing. */
struct kept_names {
	char **names; /* owned, sorted: what a directory has of them */
	bool *taken;
	size_t count;
	json_t *seen; /* owned: ID-PLACE -> how often it was asked */
};

void kept_names_init(struct kept_names *);
void kept_names_done(struct kept_names *);

/* Whether a file of a directory may be one; to be given in order. */
bool kept_names_add(struct kept_names *, const char *name);

/* ID-PLACE of a request, new. */
char *kept_names_key(const struct llm_request *);

/* For a request that comes now, new. */
char *kept_names_next(struct kept_names *, const struct llm_request *);

/* Which of those that were added has its answer, and now is taken; lent; NULL: none has. */
const char *kept_names_find(struct kept_names *, const struct llm_request *);

/* One that was asked from the same place, for what it was; lent; NULL: nothing was. */
const char *kept_names_near(const struct kept_names *, const struct llm_request *);
