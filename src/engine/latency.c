#include "engine/latency.h"

#include "base/number.h"
#include "engine/scope.h"

enum {
	USUAL_MS_MAX = 15000, /* kept while nothing is known, and at least: a tenth of all time, */
	USUAL_SHARE = 10,     /* but no more than this */
	MOST_SHARE = 2,       /* half of it, at most */
	MARGIN = 125,         /* per cent: an answer may take a quarter longer than any turn */
	OUTPUT_MIN = 128,     /* tokens: with fewer there is no answer that is worth having */
};

static int known(const struct latency *latency)
{
	return latency->count < LATENCY_TURNS ? (int)latency->count : LATENCY_TURNS;
}

void latency_learn(struct latency *latency, int64_t ms, int64_t output)
{
	int64_t index = latency->count % LATENCY_TURNS;

	if (ms <= 0)
		return;
	latency->turns[index].ms = ms;
	latency->turns[index].output = int64_max(output, 1);
	latency->count++;
}

/* Of a turn as long as no forced answer gets, the part that one may have. */
static int64_t likely(const struct latency *latency, int turn)
{
	int64_t ms = latency->turns[turn].ms, output = latency->turns[turn].output;

	return output <= SCOPE_OUTPUT_FORCED
		       ? ms
		       : (int64_t)((double)ms / (double)output * SCOPE_OUTPUT_FORCED);
}

int64_t latency_closing(const struct latency *latency)
{
	int64_t usual = int64_min(latency->all / USUAL_SHARE, USUAL_MS_MAX), most = 0;

	for (int i = 0; i < known(latency); i++)
		most = int64_max(most, likely(latency, i));
	return int64_min(int64_max(usual, most * MARGIN / 100),
			 int64_max(usual, latency->all / MOST_SHARE));
}

bool latency_too_late(const struct latency *latency, int64_t left)
{
	int64_t sum = 0;

	for (int i = 0; i < known(latency); i++)
		sum += latency->turns[i].ms;
	return sum && left - sum / known(latency) < latency_closing(latency);
}

int64_t latency_output(const struct latency *latency, int64_t ms)
{
	double fastest = 0;

	for (int i = 0; i < known(latency); i++) {
		double rate = (double)latency->turns[i].output / (double)latency->turns[i].ms;

		fastest = rate > fastest ? rate : fastest;
	}
	if (fastest == 0 || fastest * (double)ms > (double)LLM_COUNT_MAX)
		return INT64_MAX;
	return int64_max((int64_t)(fastest * (double)ms), OUTPUT_MIN);
}
