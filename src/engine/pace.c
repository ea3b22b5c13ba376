#include "engine/pace.h"

#include "base/number.h"
#include "engine/ask.h"

enum {
	USUAL_MS_MAX = 15000, /* kept while nothing is known, and at least: a tenth of all time, */
	USUAL_SHARE = 10,     /* but no more than this */
	MOST_SHARE = 2,       /* half of it, at most */
	MARGIN = 125,         /* per cent: an answer may take a quarter longer than any turn */
	OUTPUT_MIN = 128,     /* tokens: with fewer there is no answer that is worth having */
};

static int known(const struct pace *pace)
{
	return pace->count < PACE_TURNS ? (int)pace->count : PACE_TURNS;
}

void pace_learn(struct pace *pace, int64_t ms, int64_t output)
{
	int64_t place = pace->count % PACE_TURNS;

	if (ms <= 0)
		return;
	pace->turns[place].ms = ms;
	pace->turns[place].output = int64_max(output, 1);
	pace->count++;
}

/* Of a turn as long as no forced answer gets, the part that one may have. */
static int64_t likely(const struct pace *pace, int turn)
{
	int64_t ms = pace->turns[turn].ms, output = pace->turns[turn].output;

	return output <= ASK_TOKENS_FORCED
		       ? ms
		       : (int64_t)((double)ms / (double)output * ASK_TOKENS_FORCED);
}

int64_t pace_closing(const struct pace *pace)
{
	int64_t usual = int64_min(pace->all / USUAL_SHARE, USUAL_MS_MAX), most = 0;

	for (int i = 0; i < known(pace); i++)
		most = int64_max(most, likely(pace, i));
	return int64_min(int64_max(usual, most * MARGIN / 100),
			 int64_max(usual, pace->all / MOST_SHARE));
}

bool pace_too_late(const struct pace *pace, int64_t left)
{
	int64_t sum = 0;

	for (int i = 0; i < known(pace); i++)
		sum += pace->turns[i].ms;
	return sum && left - sum / known(pace) < pace_closing(pace);
}

int64_t pace_output(const struct pace *pace, int64_t ms)
{
	double fastest = 0;

	for (int i = 0; i < known(pace); i++) {
		double rate = (double)pace->turns[i].output / (double)pace->turns[i].ms;

		fastest = rate > fastest ? rate : fastest;
	}
	if (fastest == 0 || fastest * (double)ms > (double)LLM_COUNT_MAX)
		return INT64_MAX;
	return int64_max((int64_t)(fastest * (double)ms), OUTPUT_MIN);
}
