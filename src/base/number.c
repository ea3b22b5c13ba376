#include "base/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool number_parse(const char *string, const char *units, int64_t step, int64_t *ret)
{
	int64_t number, factor = 1;
	const char *unit;
	char *end;

	if (!isdigit((unsigned char)*string))
		return false;
	errno = 0;
	number = strtoll(string, &end, 10);
	if (errno)
		return false;
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	for (const char *at = units; unit && at <= unit; at++)
		factor *= step;
	if (end[unit ? 1 : 0] || __builtin_mul_overflow(number, factor, &number))
		return false;
	*ret = number;
	return true;
}
