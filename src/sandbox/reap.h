/*
 * sandbox/reap.h - takes leave of children, and waits for none without end.
 *
 * Who was told to end mostly does so at once. But a child of another uid is not
 * ours to kill without CAP_KILL, and one that is in the kernel dies when the
 * kernel has done: after a time it is left, and goes with us at the latest.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { REAP_TIME_MS = 10000 }; /* for all that is ended together */
enum { REAP_UNKNOWN = -1 };    /* no status that waitpid() tells, and no signal in it */
enum { REAP_WORDS = 32 };      /* characters that a status is told in */

/*
 * Kills a child that nobody has reaped yet, and reaps it. False and EPERM or
 * ETIMEDOUT where it lives on at `deadline` (of clock_ms()); `ret_status` is as
 * waitpid() tells it, and REAP_UNKNOWN where somebody else has reaped it: the host, or
 * the kernel where the host ignores SIGCHLD.
 */
bool reap_child(pid_t, int64_t deadline, int *ret_status);

/* "signal 9", "status 1", or that it is not known; `out` is for the words. */
const char *reap_words(int status, char out[static REAP_WORDS]);

/* Whether children of that session are left, dead or alive; then its number is still theirs. */
bool reap_session_lives(pid_t session);

/* All our children of a session. False where one lives on at `deadline`. */
bool reap_session(pid_t session, int64_t deadline);
