#include "async/rate.h"

enum { ALL = RATE_SLOTS + 1 };

void rate_init(struct rate *rate, int64_t most, int64_t window_ms)
{
	*rate = (struct rate){
		.most = most,
		.slot_ms = (window_ms + RATE_SLOTS - 1) / RATE_SLOTS,
	};
}

static int64_t *slot(struct rate *rate, int64_t number)
{
	return &rate->slots[number % ALL];
}

/* The slots that are older than the window are those that come. */
static void go_on(struct rate *rate, int64_t now_ms)
{
	int64_t now = now_ms / rate->slot_ms;

	if (now > rate->newest + ALL)
		rate->newest = now - ALL;
	while (rate->newest < now) {
		int64_t *oldest = slot(rate, ++rate->newest);

		rate->taken -= *oldest;
		*oldest = 0;
	}
}

int64_t rate_opens(struct rate *rate, int64_t now_ms)
{
	int64_t first;

	go_on(rate, now_ms);
	if (rate->taken < rate->most)
		return now_ms;
	first = rate->newest - RATE_SLOTS;
	while (!*slot(rate, first + ALL))
		first++;
	return (first + ALL) * rate->slot_ms;
}

void rate_take(struct rate *rate, int64_t now_ms)
{
	go_on(rate, now_ms);
	++*slot(rate, rate->newest);
	rate->taken++;
}

void rate_give_back(struct rate *rate, int64_t now_ms)
{
	int64_t number;

	go_on(rate, now_ms);
	for (number = rate->newest + ALL; number > rate->newest; number--) {
		if (!*slot(rate, number))
			continue;
		--*slot(rate, number);
		rate->taken--;
		return;
	}
}
