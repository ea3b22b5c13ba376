#include "budget/estimator.h"

#include <math.h>

#include "base/money.h"

enum {
	FRAME = 16, /* tokens that a provider may add to a message: role, separators */
	ROOMY = 2,  /* times the last replies' output is a limit that seldom cuts one */
};

static const double START = 2; /* beyond what base/token.h promises: some scripts take that */
static const double MARGIN = 1.25;
static const double LEAST = 1.15; /* an estimate of the next text may be as much too low */

/* Rounded up, saturating. */
static int64_t times(double factor, int64_t count)
{
	double product = ceil(factor * (double)count);

	return product >= (double)INT64_MAX ? INT64_MAX : (int64_t)product;
}

static double worst_of(const struct estimator *estimator)
{
	double worst = 0;

	for (int i = 0; i < ESTIMATOR_BILLS; i++)
		worst = fmax(worst, estimator->recent[i]);
	return worst;
}

int64_t estimator_input(const struct estimator *estimator, int64_t estimate, int64_t bytes,
			size_t messages)
{
	double factor = estimator->bills ? fmax(worst_of(estimator) * MARGIN, LEAST) : START;
	int64_t text = times(estimator->mixed ? fmax(factor, START) : factor, estimate);

	return money_add(text < bytes ? text : bytes, (int64_t)messages * FRAME);
}

void estimator_learn_input(struct estimator *estimator, int64_t estimate, int64_t billed)
{
	if (estimate <= 0 || billed <= 0)
		return;
	/* So that the frames of a few short messages are not taken for a property of their text. */
	estimator->recent[estimator->bills++ % ESTIMATOR_BILLS] = (double)billed /
								  ((double)estimate + FRAME);
}

int64_t estimator_tokens(const struct estimator *estimator, const struct token_counts *counts)
{
	return token_estimator_tokens(&estimator->tokens, counts);
}

void estimator_learn_text(struct estimator *estimator, const struct token_counts *counts,
			  int64_t billed)
{
	bool first = !estimator->bills;
	int64_t estimate = estimator_tokens(estimator, counts);

	if (!estimator->mixed)
		token_estimator_learn(&estimator->tokens, counts, billed);
	/* The first bill says how the model counts, the others how well that foretold them. */
	estimator_learn_input(estimator, first ? estimator_tokens(estimator, counts) : estimate,
			      billed);
}

int64_t estimator_output(const struct estimator *estimator, int64_t max_tokens)
{
	return estimator->overshoot > 1 ? times(estimator->overshoot, max_tokens) : max_tokens;
}

int64_t estimator_expected(const struct estimator *estimator, enum estimator_use use)
{
	int64_t most = 0;

	for (int i = 0; i < ESTIMATOR_BILLS && !estimator->mixed; i++)
		if (most < estimator->outputs[use].recent[i])
			most = estimator->outputs[use].recent[i];
	return most;
}

int64_t estimator_ample(const struct estimator *estimator, enum estimator_use use, int64_t most)
{
	int64_t ample = times(MARGIN, estimator_expected(estimator, use));

	if (!ample || ample > most)
		return most;
	if (ample < ESTIMATOR_LEAST)
		ample = ESTIMATOR_LEAST;
	return ample < most ? ample : most;
}

/* The least power of two that is not below `count`, which is at most 2^61. */
static int64_t power_above(int64_t count)
{
	int64_t power = 1;

	while (power < count)
		power *= 2;
	return power;
}

int64_t estimator_limit(const struct estimator *estimator, enum estimator_use use, int64_t fits,
			int64_t share)
{
	int64_t expected = estimator_expected(estimator, use), limit;

	if (!expected || share >= fits || expected >= fits / 2)
		return fits;
	limit = power_above(ROOMY * expected < ESTIMATOR_LEAST ? ESTIMATOR_LEAST
							       : ROOMY * expected);
	if (limit < share)
		limit = power_above(share / 2 + 1);
	return limit < fits ? limit : fits;
}

void estimator_learn_output(struct estimator *estimator, enum estimator_use use, int64_t max_tokens,
			    int64_t billed)
{
	if (max_tokens > 0 && billed > 0)
		estimator->outputs[use].recent[estimator->outputs[use].count++ % ESTIMATOR_BILLS] =
			billed;
	if (max_tokens > 0 && billed > max_tokens)
		estimator->overshoot = fmax(estimator->overshoot,
					    (double)billed / (double)max_tokens);
}
