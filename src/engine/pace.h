/*
 * engine/pace.h - how long a run's model takes to answer, and what follows for its last answer.
 *
 * Before the first turn is measured the end of a run's time is kept for the forced answer by a
 * rule of thumb; then by what the turns took. docs/budget.md has the rule.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { PACE_TURNS = 8 }; /* remembered */

/* Embed it; zero has measured nothing. Times are milliseconds. */
struct pace {
	int64_t all; /* the time that the run has */
	int64_t count;
	struct {
		int64_t ms, output; /* that a turn took, and its tokens; a ring */
	} turns[PACE_TURNS];
};

void pace_learn(struct pace *, int64_t ms, int64_t output);

/* How much of the time is kept for the forced answer. */
int64_t pace_closing(const struct pace *);

/* Whether a turn that begins with `left` of the time to go would probably take some of that. */
bool pace_too_late(const struct pace *, int64_t left);

/* Output that comes within so long, as fast as it came at best, but no less than makes an answer;
 * INT64_MAX: nobody knows. */
int64_t pace_output(const struct pace *, int64_t ms);
