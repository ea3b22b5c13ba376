/* sandbox/threads.h - the threads of a process, as /proc tells of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Whether a thread besides the first goes on. Those of a process that was killed do not, however
 * long the kernel takes to free their memory. Where /proc hides them, all of the `count` that the
 * process's own status tells of count as going on: no worker hides behind that.
 */
bool threads_go_on(pid_t, int64_t count);
