/* cli/figure.h - counts and amounts, short enough to be read in passing. */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* "950", "1.2k", "182k", "3.4M" */
void figure_count(int64_t count, char out[static 24]);

/* A result's US dollars: "$0.0123", or "cost unknown" where the value is no number. */
void figure_cost(const json_t *dollars, char out[static 32]);
