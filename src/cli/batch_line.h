/*
 * cli/batch_line.h - how a batch stands, in one line.
 *
 *     412 of 1000 | 3 failed | 8 at work | 12 calls | $1.23 | 14m left | acme 400/900, zeta 12/100
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "batch/scoreboard.h"
#include "cli/live_line.h"

/* What does not fit goes, from the least to the most wanted; nothing is cut. ASCII. `stopping`:
 * somebody asked for the end. */
void batch_line_format(const struct scoreboard *, const struct scoreboard_sum *, bool stopping,
		       size_t width, char line[static LIVE_LINE_MAX]);

/* "40s", "14m", "2h05m", "3d04h": no more exactly than anybody knows it. */
void batch_line_duration(int64_t ms, char out[static 24]);
