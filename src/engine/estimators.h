/*
 * engine/estimators.h - the estimators of one question: one for each model that it asks.
 */
#pragma once

#include <stddef.h>

#include "budget/estimator.h"

enum { ESTIMATORS_MAX = 16 }; /* code may name any model: those beyond it share one */

/* Embed it; zero is empty. */
struct estimators {
	struct {
		char *model; /* owned */
		struct estimator estimator;
	} of[ESTIMATORS_MAX];
	size_t count;
	struct estimator others; /* of all beyond them */
};

void estimators_done(struct estimators *);

/* The model's estimator as it stands; lent until the next one is learned. */
const struct estimator *estimators_look(const struct estimators *, const char *model);

/* The one to learn with. */
struct estimator *estimators_learn(struct estimators *, const char *model);
