/*
 * engine/gauges.h - the gauges of one question: one for each model that it asks.
 */
#pragma once

#include <stddef.h>

#include "budget/gauge.h"

enum { GAUGES_MAX = 16 }; /* code may name any model: those beyond it share a gauge */

/* Embed it; zero is empty. */
struct gauges {
	struct {
		char *model; /* owned */
		struct gauge gauge;
	} of[GAUGES_MAX];
	size_t count;
	struct gauge others; /* of all beyond them */
};

void gauges_done(struct gauges *);

/* The model's gauge as it stands; lent until the next one is learned. */
const struct gauge *gauges_look(const struct gauges *, const char *model);

/* The one to learn with. */
struct gauge *gauges_learn(struct gauges *, const char *model);
