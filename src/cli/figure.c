#include "cli/figure.h"

#include <inttypes.h>
#include <stdio.h>

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
