/*
 * cli/batch_watch.h - how a batch at work is watched.
 *
 * On standard error, on a terminal, a line that is rewritten; elsewhere one each time that another
 * tenth of the jobs is over, and each minute. After SIGUSR1 what is in flight, whoever wants quiet.
 * And metrics, where they are asked for (batch/metrics.h).
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct batch_watch;
struct progress_line;
struct runner;
struct scoreboard;
struct scoreboard_sum;
struct session;

/* From here on SIGUSR1 ends nothing. Once, before the work begins. */
void batch_watch_install(void);

/* Both are lent until batch_watch_free(). NULL and RLMD_ERROR_USAGE where metrics cannot be where
 * they are to be. */
struct batch_watch *batch_watch_new(const struct session *, const struct runner *,
				    struct rlmd_error *);

/* How a batch stands, part by part; `stopping`: an end was asked for.
 *
 *     412 of 1000 | 3 failed | 8 at work | 12 calls | $1.23 | 14m left | acme 400/900, zeta 12/100
 */
void batch_watch_describe(const struct scoreboard *, const struct scoreboard_sum *, bool stopping,
			  struct progress_line *);

/* Clears the line, and writes the metrics for the last time; the runner is still there. NULL is
 * fine. */
void batch_watch_free(struct batch_watch *);
