/*
 * base/interrupt.h - the signals that ask the program to end, from its first line to its last.
 *
 * They end nothing by themselves: they are counted, they wake whoever waits here, and they make a
 * descriptor readable for an event loop. What is to be done then is for those who know what has
 * been started. Where nothing was installed, none ever comes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WAIT_FOREVER INT64_MAX

/*
 * Once, before anything is started: SIGINT, SIGTERM and SIGHUP, but for those that whoever started
 * us has ignored (nohup(1), jobs in the background).
 */
void interrupt_install(void);

/* How many have come, and the first of them: SIGINT, or SIGTERM, which stands for SIGHUP too; 0 is
 * none. */
int interrupt_count(void);
int interrupt_signal(void);

/* Readable since one came, until it is cleared; -1: nothing is installed. */
int interrupt_fd(void);
void interrupt_clear(void);

enum wait_end {
	WAIT_READY,
	WAIT_LATE,        /* the deadline came first */
	WAIT_INTERRUPTED, /* more signals have come than `known` */
	WAIT_FAILED,      /* errno says why */
};

/*
 * Until `fd` is ready for `events` of poll(2), or at its end. `deadline` is one of clock_ms(), or
 * WAIT_FOREVER; where it has passed already, what is ready is still told as ready.
 */
enum wait_end interrupt_wait(int fd, short events, int64_t deadline, int known);
