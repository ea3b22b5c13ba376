/*
 * engine/estimators.h - the estimators of a provider: one for each model that is asked.
 */
#pragma once

#include <stddef.h>

#include "budget/estimator.h"
#include "llm/request.h"

enum { ESTIMATORS_MAX = 16 }; /* code may name any model: those beyond it share one */

/* Embed it; zero is empty. */
struct estimators {
	struct {
		char *model; /* owned */
		struct estimator estimator;
	} of[ESTIMATORS_MAX];
	size_t count;
	struct estimator others; /* of all beyond them */
	struct estimator fresh;  /* of the model that was looked for last and has no bill */
};

void estimators_done(struct estimators *);

/* The model's estimator as it stands; before its first bill it knows the vocabulary that the name
 * tells. Lent until the next call of any function here. */
const struct estimator *estimators_look(struct estimators *, const char *model);

/* Replies of which kind are alike in their length. */
enum estimator_use estimators_use(enum llm_kind);

/* The most input tokens that these messages should be billed as, and what they are made of. */
int64_t estimators_bound(struct estimators *, const char *model, const struct llm_message *messages,
			 size_t count, struct token_counts *ret_counts);

/* The one to learn with. */
struct estimator *estimators_learn(struct estimators *, const char *model);
