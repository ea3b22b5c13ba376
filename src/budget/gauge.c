#include "budget/gauge.h"

#include <math.h>

#include "base/money.h"

enum {
	FRAME = 16, /* tokens that a provider may add to a message: role, separators */
};

static const double START = 2; /* base/text.h promises its estimate within a factor of two */
static const double MARGIN = 1.25;

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
	double factor = gauge->bills ? fmax(worst_of(gauge) * MARGIN, 1) : START;
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

int64_t gauge_output(const struct gauge *gauge, int64_t max_tokens)
{
	return gauge->overshoot > 1 ? times(gauge->overshoot, max_tokens) : max_tokens;
}

void gauge_learn_output(struct gauge *gauge, int64_t max_tokens, int64_t billed)
{
	if (max_tokens > 0 && billed > max_tokens)
		gauge->overshoot = fmax(gauge->overshoot, (double)billed / (double)max_tokens);
}
