/*
 * sandbox/procfs.h - the memory and the threads of a process, as /proc tells of them.
 *
 * A worker opens its /proc/PID/status itself and hands the descriptor over: a /proc mounted with
 * hidepid shows an undumpable process to nobody else, not even to its own user. A read
 * asks nobody again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct procfs_status {
	int64_t memory; /* bytes that no file stands behind, swapped out or not; 0: it has ended */
	int64_t threads;
};

/* Of an open status file. False and errno where the process is gone, or `status` is -1. */
bool procfs_read(int status, struct procfs_status *);

/* Of its content. */
struct procfs_status procfs_parse(const char *content);

/*
 * Whether a thread besides the first goes on. Those of a process that was killed do not, however
 * long the kernel takes to free their memory. Where /proc hides them, all of the `count` that the
 * process's own status tells of count as going on: no worker hides behind that.
 */
bool procfs_threads_go_on(pid_t, int64_t count);
