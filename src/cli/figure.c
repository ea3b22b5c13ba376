#include "cli/figure.h"

#include <inttypes.h>
#include <rlmd/job.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/money.h"

void figure_count(int64_t count, char out[static 24])
{
	static const char units[] = "kMGTPE";
	double value = (double)count;
	size_t unit = 0;

	if (count < 1000) {
		snprintf(out, 24, "%" PRId64, count);
		return;
	}
	for (value /= 1000; value >= 999.5 && units[unit + 1]; unit++)
		value /= 1000;
	snprintf(out, 24, value < 9.95 ? "%.1f%c" : "%.0f%c", value, units[unit]);
}

void figure_cost(const json_t *dollars, char out[static 32])
{
	if (json_is_number(dollars))
		money_format(money_from_dollars(json_number_value(dollars)), out);
	else
		snprintf(out, 32, "cost unknown");
}

void figure_spent(int64_t cost, int64_t max_cost, char out[static 80])
{
	char spent[32], most[32];

	money_format(cost, spent);
	money_format(max_cost, most);
	if (max_cost == RLMD_UNLIMITED)
		snprintf(out, 80, "%s", spent);
	else
		snprintf(out, 80, "%s of %s", spent, most);
}

void figure_elapsed(int64_t ms, char out[static 16])
{
	if (ms >= 60000)
		clock_format(ms, out);
	else
		snprintf(out, 16, "%ds", ms > 0 ? (int)(ms / 1000) : 0);
}

void figure_left(int64_t ms, char out[static 24])
{
	int64_t minutes = (ms + 30000) / 60000;

	if (ms < 60000)
		snprintf(out, 24, "%" PRId64 "s", (ms > 0 ? ms : 0) / 1000);
	else if (minutes < 60)
		snprintf(out, 24, "%" PRId64 "m", minutes);
	else if (minutes < 24 * 60)
		snprintf(out, 24, "%" PRId64 "h%02dm", minutes / 60, (int)(minutes % 60));
	else
		snprintf(out, 24, "%" PRId64 "d%02dh", minutes / 60 / 24, (int)(minutes / 60 % 24));
}
