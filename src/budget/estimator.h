/*
 * budget/estimator.h - how many tokens a call may be billed as, learned from what was.
 *
 * No provider tells its tokenizer, so an estimate is multiplied by a factor: by
 * 2 at first, then by the worst of the last bills, with a quarter as margin, and
 * at least by 1.15. The estimates themselves are corrected by the bills (base/token.h). One
 * estimator serves one model for one question and all its runs.
 *
 * A bill can still be larger: after English the first text of another kind
 * (base64, a rare script) can take more than a quarter more tokens than it was
 * estimated, and a provider may add tokens of its own, or lie. The part of a bill beyond its
 * reservation is overrun (budget/budget.h): counted, and where the account is overdrawn by it,
 * everything further is refused. The next bound knows better.
 *
 * Output is bounded by the max_tokens that is sent, which a provider keeps to. So a
 * small budget need not hold a whole window of output for each call: an estimator says
 * which limit replies like the last ones stay below. A reply that is cut by it is
 * asked for again, with a larger one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/token.h"

enum { ESTIMATOR_BILLS = 8 }; /* remembered */

enum { ESTIMATOR_LEAST = 64 }; /* tokens: no limit below it is chosen by what was learned */

/* The purpose of a reply: replies of each have sizes of their own. */
enum estimator_use { ESTIMATOR_TURN, ESTIMATOR_CALL, ESTIMATOR_FORCED, ESTIMATOR_USES };

/* Embed it; zero is pessimistic. */
struct estimator {
	int64_t bills; /* learned from so far */
	struct token_estimator tokens;
	double recent[ESTIMATOR_BILLS]; /* input billed by estimate, the last in a ring */
	double overshoot;               /* worst output billed by max_tokens; 0: none was above */
	struct {
		int64_t count;
		int64_t recent[ESTIMATOR_BILLS]; /* output billed, in tokens; likewise a ring */
	} outputs[ESTIMATOR_USES];
	bool mixed; /* of several models: what one was billed does not make another cheaper */
};

/* The most input tokens that `messages` messages of `bytes` bytes in all, which an estimate
 * takes for `estimate` tokens, should be billed as. Never more than a token a byte and what
 * frames a message. */
int64_t estimator_input(const struct estimator *, int64_t estimate, int64_t bytes, size_t messages);

/* The most output tokens that a call with this max_tokens should be billed. */
int64_t estimator_output(const struct estimator *, int64_t max_tokens);

/* The most output tokens of the last replies; 0: nothing is known of that use, or of one model. */
int64_t estimator_expected(const struct estimator *, enum estimator_use);

/* As much output that a reply like the last ones is not cut: a quarter more than those; and at most
 * `most`, which is also what is returned where nothing is known. */
int64_t estimator_ample(const struct estimator *, enum estimator_use, int64_t most);

/*
 * The max_tokens to send, where the account affords up to `fits`, and up to `share` without
 * leaving too little for other calls. Learned sizes only lower it where money is scarce, and to no
 * less than twice the last replies. Below `fits` it is a power of two, so that requests that are
 * made again over the same budget are the same.
 */
int64_t estimator_limit(const struct estimator *, enum estimator_use, int64_t fits, int64_t share);

/* The tokens that the model will count, by its bills so far: the estimate for estimator_input(). */
int64_t estimator_tokens(const struct estimator *, const struct token_counts *);

/* It was billed so many input tokens for these: that corrects the estimates of the next texts, and
 * what it was beyond the corrected estimate, their margin. */
void estimator_learn_text(struct estimator *, const struct token_counts *, int64_t billed);

/* A provider reported `billed` input tokens for what was estimated so; and output likewise.
 * Numbers that are not positive teach nothing. */
void estimator_learn_input(struct estimator *, int64_t estimate, int64_t billed);
void estimator_learn_output(struct estimator *, enum estimator_use, int64_t max_tokens,
			    int64_t billed);
