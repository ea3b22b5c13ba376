/*
 * prompt/prompt_set.h - a prompt profile: all texts that models are told, by name.
 *
 * The shipped profiles are compiled in from share/prompts/PROFILE/, so that a
 * run never depends on a file that somebody could have moved; --prompt may
 * name a directory with others. A text that a profile lacks is the default's. See docs/prompts.md.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

enum prompt_name {
#define PROMPT(name, values, what) PROMPT_##name,
#include "prompt/prompts.def"
	PROMPT_COUNT
};

struct prompt_set {
	const char *name; /* of the profile, or the directory as it was given */
	struct rlmd_text
		texts[PROMPT_COUNT]; /* NUL-terminated; those of the default one are static */
};

/* The profile of that name, or else the directory. To be freed; NULL: RLMD_ERROR_USAGE says why. */
const struct prompt_set *prompt_set_open(const char *name, struct rlmd_error *);
void prompt_set_free(const struct prompt_set *); /* NULL and shipped ones are fine */

/* The shipped one that suits a model with a window of so many tokens. Static. */
const struct prompt_set *prompt_set_for(const char *model, int64_t window);

/* A text of it, by its name (asserted to exist). */
struct rlmd_text prompt_set_text(const struct prompt_set *, const char *name);
