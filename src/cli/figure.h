/* cli/figure.h - counts, amounts and times, short enough to be read in passing. */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* "950", "1.2k", "182k", "3.4M" */
void figure_count(int64_t count, char out[static 24]);

/* A result's US dollars: "$0.0123", or "cost unknown" where the value is no number. */
void figure_cost(const json_t *dollars, char out[static 32]);

/* "$0.12", or "$0.12 of $5.00" where there is a limit. */
void figure_spent(int64_t cost, int64_t max_cost, char out[static 80]);

/* "41s", "2m03s": whole seconds, for a line that is rewritten should not flicker. */
void figure_elapsed(int64_t ms, char out[static 16]);

/* "40s", "14m", "2h05m", "3d04h": no more exactly than an estimate is. */
void figure_left(int64_t ms, char out[static 24]);
