/*
 * cli/batch.h - jobs at work: what `rlmd batch` and `rlmd work` go through.
 *
 * What has to outlive this process is in the store (batch/runner.h); here are the settings, the
 * signals, and what is said at the end.
 */
#pragma once

struct session;

/* Carries out the jobs of a file, or, where that is NULL, those that the store has. The session has
 * begun. Returns the exit status. */
int batch_run(struct session *, const char *jobs);
