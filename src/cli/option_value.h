/*
 * cli/option_value.h - an option's value, from how it is written on a command line, in
 * a file or in the environment.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/option.h"

/* Of any type, before it is known whether it counts. */
union option_value {
	const char *text; /* lent by the string that was read */
	int64_t number;
	double real;
	bool on;
};

/* RLMD_ERROR_USAGE says what the option takes instead. */
bool option_value_read(const struct option_row *, const char *string, union option_value *ret,
		       struct rlmd_error *);
