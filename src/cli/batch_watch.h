/*
 * cli/batch_watch.h - how a batch at work is watched.
 *
 * On standard error, on a terminal, a line that is rewritten; elsewhere one each time that another
 * tenth of the jobs is over, and each minute. After SIGUSR1 what is in flight, whoever wants quiet.
 * And metrics, where they are asked for (batch/metrics.h).
 */
#pragma once

#include "base/error.h"

struct batch_watch;
struct runner;
struct session;

/* From here on SIGUSR1 ends nothing. Once, before the work begins. */
void batch_watch_install(void);

/* Both are lent until batch_watch_free(). NULL and RLMD_ERROR_USAGE where metrics cannot be where
 * they are to be. */
struct batch_watch *batch_watch_new(const struct session *, const struct runner *,
				    struct rlmd_error *);

/* Clears the line, and writes the metrics for the last time; the runner is still there. NULL is
 * fine. */
void batch_watch_free(struct batch_watch *);
