/*
 * engine/gauges.h - the gauges of one question: one for each model that it asks.
 */
#pragma once

#include <stddef.h>

#include "budget/gauge.h"

enum { GAUGES_MAX = 16 }; /* code may name any model: those beyond it stay pessimistic */

/* Embed it; zero is empty. */
struct gauges {
	struct {
		char *model; /* owned */
		struct gauge gauge;
	} of[GAUGES_MAX];
	size_t count;
};

void gauges_done(struct gauges *);

/* The model's gauge as it stands; lent until the next one is learned. */
const struct gauge *gauges_look(const struct gauges *, const char *model);

/* The one to learn with; NULL where there is no room for another model. */
struct gauge *gauges_learn(struct gauges *, const char *model);
