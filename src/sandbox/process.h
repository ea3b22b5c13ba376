/*
 * sandbox/process.h - the making and the last of a worker's process; the rest of
 * its life is in sandbox.h.
 *
 * A process that its owner has freed may not be dead yet, and must be reaped all
 * the same: it stays in the sandbox's list until it is.
 */
#pragma once

#include <sys/queue.h>

#include "sandbox/sandbox.h"

TAILQ_HEAD(process_list, process);

/* `pidfd` is taken; `list` is lent and outlives the process. */
struct process *process_new(struct event_base *, struct process_list *, pid_t, int pidfd);

/* Waits for those in the list, which must all have been freed by their owners. */
void process_list_reap(struct process_list *);
