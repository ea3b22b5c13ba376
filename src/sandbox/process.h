/*
 * sandbox/process.h - the making and the last of a worker's process; the rest of
 * its life is in sandbox.h.
 *
 * A process that its owner has freed may not be dead yet, and must be reaped all
 * the same: it stays in the sandbox's list until it is.
 */
#pragma once

#include <stdint.h>
#include <sys/queue.h>
#include <time.h>

#include "sandbox/cgroup.h"
#include "sandbox/procfs.h"
#include "sandbox/sandbox.h"
#include "sandbox/uids.h"

struct process {
	struct process_list *list; /* lent */
	struct event *exit;        /* owned: the pidfd; pending while somebody wants to know */
	int pidfd;                 /* owned */
	int status;                /* owned: of procfs_read(), or -1 */
	pid_t pid;
	clockid_t clock;                   /* of its processor time; 0: not known */
	uint32_t uid;                      /* its own, until it is reaped; or 0 */
	uint64_t memory;                   /* bytes that it may use */
	int64_t inherited;                 /* bytes that it has from its template */
	char verdict[PROCESS_REASON_SIZE]; /* why we killed it, or "" */
	bool reaped, freed;
	bool hollow; /* it had no memory at the last look */

	process_exit_fn *fn; /* NULL until process_on_exit(), and after it was told */
	void *owner;
	TAILQ_ENTRY(process) entry;
};

TAILQ_HEAD(process_queue, process);

/* The processes of a sandbox, and what they share. */
struct process_list {
	struct process_queue queue;
	struct event_base *base;     /* lent */
	struct uids uids;            /* where theirs come from and go back to */
	const struct cgroup *cgroup; /* lent, or NULL */
	uint64_t ceiling;            /* bytes that all of them together may use */
	uint32_t cpu_seconds;        /* of processor time that one may use */
	int64_t kills;               /* of the cgroup, that have been explained */
};

/* A description of its own, read-only, of a sealed memory file: workers that share an input must
 * not share its position and flags. -1 and errno. */
int process_reopen_input(int file);

/* `pidfd`, `status` and `uid` are taken; `list` is lent and outlives the process. */
struct process *process_new(struct process_list *, pid_t, int pidfd, int status, uint32_t uid,
			    uint64_t memory);

/* Kills it for a reason that its owner will hear; only the first one counts. */
void process_condemn(struct process *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Waits for those in the list, which must all have been freed by their owners; those that live on
 * at `deadline` are left. */
void process_list_reap(struct process_list *, int64_t deadline);

/* In the child of a fork, before it is freed: nothing that the parent uses is touched any more. */
void process_list_cut(struct process_list *);
