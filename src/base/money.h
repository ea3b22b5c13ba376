/*
 * base/money.h - US dollars as integers.
 *
 * The unit is the pico-dollar, 10^-12 USD: fine enough for any published price
 * of one token, and 9.2 million dollars fit. Sums are exact; sums and products
 * that would overflow saturate at MONEY_MAX.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define MONEY_DOLLAR INT64_C(1000000000000)
#define MONEY_MAX    INT64_MAX

int64_t money_add(int64_t a, int64_t b);
int64_t money_times(int64_t price, int64_t count); /* price per piece, pieces >= 0 */

/* "5", "0.25", "1e-6" dollars, exactly; not negative, at most 9,000,000, at most 12 decimals;
 * RLMD_ERROR_USAGE otherwise. */
bool money_parse(const char *string, int64_t *ret_money, struct rlmd_error *);
int64_t money_from_dollars(double dollars); /* rounded to the nearest unit, saturating */
double money_to_dollars(int64_t money);     /* for JSON; prints back exactly with 17 digits */
void money_format(int64_t money, char out[static 32]); /* "$0.214", "$5.00", "$0.000012" */
