/*
 * sandbox/child.h - ends children, and waits for none without end.
 *
 * A child that was told to end mostly does so at once. But a child of another uid is not
 * ours to kill without CAP_KILL, and one that is in the kernel dies when the
 * kernel has done: after a time it is left, and goes with us at the latest.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum { CHILD_END_MS = 10000 };      /* for all that is ended together */
enum { CHILD_STATUS_UNKNOWN = -1 }; /* no status that waitpid() tells, and no signal in it */
enum { CHILD_WORDS = 32 };          /* characters that a status is told in */

/*
 * Kills a child that nobody has reaped yet, and reaps it. False and EPERM or
 * ETIMEDOUT where it lives on at `deadline` (of clock_ms()); `ret_status` is as
 * waitpid() tells it, and CHILD_STATUS_UNKNOWN where somebody else has reaped it: the host, or
 * the kernel where the host ignores SIGCHLD.
 */
bool child_end(pid_t, int64_t deadline, int *ret_status);

/* "signal 9", "status 1", or that it is not known; `out` is for the words. */
const char *child_status_words(int status, char out[static CHILD_WORDS]);

/* Whether children of that session are left, dead or alive; then its number is still theirs. */
bool child_session_lives(pid_t session);

/* All our children of a session. False where one lives on at `deadline`. */
bool child_end_session(pid_t session, int64_t deadline);

/* The two pipes to a child: each side gets what it reads from and what it writes to.
 * RLMD_ERROR_SANDBOX where there are none. */
bool child_open_pipes(int ret_ours[2], int ret_theirs[2], struct rlmd_error *);
