/*
 * cli/batch_watch.h - how a batch at work is watched, on standard error.
 *
 * On a terminal a line that is rewritten; elsewhere one each time that another tenth of the jobs is
 * over, and each minute. After SIGUSR1 what is in flight, whoever wants quiet.
 */
#pragma once

struct batch_watch;
struct runner;
struct session;

/* From here on SIGUSR1 ends nothing. Once, before the work begins. */
void batch_watch_install(void);

/* Both are lent until batch_watch_free(). */
struct batch_watch *batch_watch_new(const struct session *, const struct runner *);
void batch_watch_free(struct batch_watch *); /* clears the line; NULL is fine */
