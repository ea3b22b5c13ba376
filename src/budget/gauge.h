/*
 * budget/gauge.h - how many tokens a text may be billed as, learned from what was.
 *
 * No provider tells its tokenizer, so an estimate is multiplied by a factor: by
 * 2 at first, then by the worst of the last bills, with a quarter as margin, and
 * at least by 1. One gauge serves one model for one question and all its runs.
 *
 * A bill can still be larger: after English the first text of another kind
 * (base64, a rare script) can take more than a quarter more tokens than it was
 * estimated, and a provider may add tokens of its own, or lie. What a bill has
 * beyond its reservation is overrun (budget/budget.h): counted, and where the
 * account is overdrawn by it, everything further is refused. The next bound
 * knows better.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GAUGE_BILLS = 8 }; /* remembered */

/* Embed it; zero is pessimistic. */
struct gauge {
	int64_t bills;              /* learned from so far */
	double recent[GAUGE_BILLS]; /* input billed by estimate, the last in a ring */
	double overshoot;           /* worst output billed by max_tokens; 0: none was above */
	bool mixed; /* of several models: what one was billed does not make another cheaper */
};

/* The most input tokens that `messages` messages of `bytes` bytes in all, which an estimate
 * takes for `estimate` tokens, should be billed as. Never more than a token a byte and what
 * frames a message. */
int64_t gauge_input(const struct gauge *, int64_t estimate, int64_t bytes, size_t messages);

/* The most output tokens that a call with this max_tokens should be billed. */
int64_t gauge_output(const struct gauge *, int64_t max_tokens);

/* A provider reported `billed` input tokens for what was estimated so; and output likewise.
 * What is not positive teaches nothing. */
void gauge_learn_input(struct gauge *, int64_t estimate, int64_t billed);
void gauge_learn_output(struct gauge *, int64_t max_tokens, int64_t billed);
