#include "base/money.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t money_add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? MONEY_MAX : sum;
}

int64_t money_times(int64_t price, int64_t count)
{
	int64_t product;

	return __builtin_mul_overflow(price, count, &product) ? MONEY_MAX : product;
}

int64_t money_from_dollars(double dollars)
{
	double units = dollars * (double)MONEY_DOLLAR;

	if (!(units > 0))
		return 0;
	return units >= (double)MONEY_MAX ? MONEY_MAX : llround(units);
}

bool money_parse(const char *string, int64_t *ret_money, struct error *err)
{
	char *end;
	double dollars = strtod(string, &end);

	if (end == string || *end || !isfinite(dollars) || dollars < 0 || dollars > 9e6 ||
	    strspn(string, "0123456789.eE+-") != strlen(string))
		return error_set(err, ERROR_USAGE,
				 "'%s' is no amount of US dollars; write 5 or 0.25", string);
	*ret_money = money_from_dollars(dollars);
	return true;
}

double money_to_dollars(int64_t money)
{
	return (double)money / (double)MONEY_DOLLAR;
}

void money_format(int64_t money, char out[static 32])
{
	int64_t whole = money / MONEY_DOLLAR;
	int64_t rest = money % MONEY_DOLLAR;
	char digits[16];
	int used;

	if (money == MONEY_MAX) {
		snprintf(out, 32, "unlimited");
		return;
	}
	snprintf(digits, sizeof digits, "%012" PRId64, rest < 0 ? -rest : rest);
	/* Three digits from the first that counts, but never fewer than cents. */
	used = (int)strspn(digits, "0");
	used = used >= 12 || whole ? 2 : used + 3;
	if (used > 12)
		used = 12;
	while (used > 2 && digits[used - 1] == '0')
		used--;
	if (whole && rest)
		used = used < 3 && digits[2] != '0' ? 3 : used;
	snprintf(out, 32, "$%" PRId64 ".%.*s", whole, used, digits);
}
