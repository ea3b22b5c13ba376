#include "budget/gauge.h"

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

static double worst_of(const struct gauge *gauge)
{
	double worst = 0;

	for (int i = 0; i < GAUGE_BILLS; i++)
		worst = fmax(worst, gauge->recent[i]);
	return worst;
}

int64_t gauge_input(const struct gauge *gauge, int64_t estimate, int64_t bytes, size_t messages)
{
	double factor = gauge->bills ? fmax(worst_of(gauge) * MARGIN, LEAST) : START;
	int64_t text = times(gauge->mixed ? fmax(factor, START) : factor, estimate);

	return money_add(text < bytes ? text : bytes, (int64_t)messages * FRAME);
}

void gauge_learn_input(struct gauge *gauge, int64_t estimate, int64_t billed)
{
	if (estimate <= 0 || billed <= 0)
		return;
	/* So that the frames of a few short messages are not taken for a property of their text. */
	gauge->recent[gauge->bills++ % GAUGE_BILLS] = (double)billed / ((double)estimate + FRAME);
}

int64_t gauge_estimate(const struct gauge *gauge, const struct token_counts *counts)
{
	return token_estimator_tokens(&gauge->estimator, counts);
}

void gauge_learn_text(struct gauge *gauge, const struct token_counts *counts, int64_t billed)
{
	bool first = !gauge->bills;
	int64_t estimate = gauge_estimate(gauge, counts);

	if (!gauge->mixed)
		token_estimator_learn(&gauge->estimator, counts, billed);
	/* The first bill says how the model counts, the others how well that foretold them. */
	gauge_learn_input(gauge, first ? gauge_estimate(gauge, counts) : estimate, billed);
}

int64_t gauge_output(const struct gauge *gauge, int64_t max_tokens)
{
	return gauge->overshoot > 1 ? times(gauge->overshoot, max_tokens) : max_tokens;
}

int64_t gauge_expected(const struct gauge *gauge, enum gauge_use use)
{
	int64_t most = 0;

	for (int i = 0; i < GAUGE_BILLS && !gauge->mixed; i++)
		if (most < gauge->outputs[use].recent[i])
			most = gauge->outputs[use].recent[i];
	return most;
}

int64_t gauge_ample(const struct gauge *gauge, enum gauge_use use, int64_t most)
{
	int64_t ample = times(MARGIN, gauge_expected(gauge, use));

	if (!ample || ample > most)
		return most;
	if (ample < GAUGE_LEAST)
		ample = GAUGE_LEAST;
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

int64_t gauge_limit(const struct gauge *gauge, enum gauge_use use, int64_t fits, int64_t share)
{
	int64_t expected = gauge_expected(gauge, use), limit;

	if (!expected || share >= fits || expected >= fits / 2)
		return fits;
	limit = power_above(ROOMY * expected < GAUGE_LEAST ? GAUGE_LEAST : ROOMY * expected);
	if (limit < share)
		limit = power_above(share / 2 + 1);
	return limit < fits ? limit : fits;
}

void gauge_learn_output(struct gauge *gauge, enum gauge_use use, int64_t max_tokens, int64_t billed)
{
	if (max_tokens > 0 && billed > 0)
		gauge->outputs[use].recent[gauge->outputs[use].count++ % GAUGE_BILLS] = billed;
	if (max_tokens > 0 && billed > max_tokens)
		gauge->overshoot = fmax(gauge->overshoot, (double)billed / (double)max_tokens);
}
