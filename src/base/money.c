#include "base/money.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AMOUNT_MAX (9000000 * MONEY_DOLLAR)

enum {
	DECIMALS = 12,         /* of a dollar */
	EXPONENT_MAX = 100000, /* that anybody writes; far more than any amount has digits */
};

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

/* A decimal number as it is written: `digits` times ten to the power of `exponent`. */
struct decimal {
	int64_t digits; /* saturating at MONEY_MAX; the last is no zero, unless it is all */
	long exponent;
};

/* Reads digits with a point among them. Returns the rest of the string; NULL if there are none. */
static const char *read_digits(const char *string, struct decimal *ret)
{
	bool point = false, any = false;
	long zeros = 0;

	*ret = (struct decimal){0};
	for (; isdigit((unsigned char)*string) || (*string == '.' && !point); string++) {
		if (*string == '.') {
			point = true;
			continue;
		}
		any = true;
		ret->exponent -= point;
		zeros++;
		if (*string == '0')
			continue;
		for (; zeros; zeros--)
			ret->digits = money_times(ret->digits, 10);
		ret->digits = money_add(ret->digits, *string - '0');
	}
	ret->exponent += zeros;
	return any ? string : NULL;
}

static bool read_decimal(const char *string, struct decimal *ret)
{
	const char *end = read_digits(string, ret);
	const char *power;
	long exponent;

	if (!end || !*end)
		return end;
	power = end + 1 + (end[1] == '-' || end[1] == '+');
	if ((*end != 'e' && *end != 'E') || !*power || power[strspn(power, "0123456789")])
		return false;
	exponent = strtol(end + 1, NULL, 10);
	if (exponent > EXPONENT_MAX)
		exponent = EXPONENT_MAX;
	if (exponent < -EXPONENT_MAX)
		exponent = -EXPONENT_MAX;
	ret->exponent += exponent;
	return true;
}

bool money_parse(const char *string, int64_t *ret_money, struct rlmd_error *err)
{
	struct decimal decimal;
	int64_t money;

	if (!read_decimal(string, &decimal))
		return error_set(err, RLMD_ERROR_USAGE,
				 "'%s' is no amount of US dollars; write 5 or 0.25", string);
	money = decimal.digits;
	decimal.exponent += DECIMALS;
	if (money && decimal.exponent < 0)
		return error_set(err, RLMD_ERROR_USAGE,
				 "'%s' has more than %d decimals; write 5 or 0.25", string,
				 DECIMALS);
	for (; money && money < MONEY_MAX && decimal.exponent; decimal.exponent--)
		money = money_times(money, 10);
	if (money > AMOUNT_MAX)
		return error_set(err, RLMD_ERROR_USAGE, "'%s' is more than 9000000 US dollars",
				 string);
	*ret_money = money;
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
