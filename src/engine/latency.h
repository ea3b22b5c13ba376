/*
 * engine/latency.h - how long a run's model takes to answer, and what follows for its last answer.
 *
 * Before the first turn is measured the end of a run's time is kept for the forced answer by a
 * rule of thumb; then by what the turns took. docs/budget.md has the rule.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { LATENCY_TURNS = 8 }; /* remembered */

/* Embed it; zero has measured nothing. Times are milliseconds. */
struct latency {
	int64_t all; /* the time that the run has */
	int64_t count;
	struct {
		int64_t ms, output; /* that a turn took, and its tokens; a ring */
	} turns[LATENCY_TURNS];
};

void latency_learn(struct latency *, int64_t ms, int64_t output);

/* How much of the time is kept for the forced answer. */
int64_t latency_closing(const struct latency *);

/* Whether a turn that begins with `left` of the time to go would probably take some of that. */
bool latency_too_late(const struct latency *, int64_t left);

/* Output that comes within so long, as fast as it came at best, but no less than makes an answer;
 * INT64_MAX: nobody knows. */
int64_t latency_output(const struct latency *, int64_t ms);
