/*
 * cli/interrupt.h - the signals that ask the program to end, from its first line to its last.
 *
 * They end nothing by themselves: they are counted, they wake whoever waits (base/wait.h), and they
 * make a descriptor readable for an event loop. The code that has started something decides how to
 * stop it. Where nothing was installed, none ever comes.
 */
#pragma once

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
