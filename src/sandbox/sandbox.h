/*
 * sandbox/sandbox.h - confined python3 processes, forked from one template.
 *
 * Owns the template: a python3 that has loaded the standard library, has walled
 * itself off and forks on request. Between the fork and the first foreign byte,
 * worker/_rlmd.c raises the rest and proves that it stands. A process that was
 * handed out here is confined as the report says, or was never handed out. Messages over its pipes
 * are of a floor above this one.
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rlmd/sandbox.h>

#include "base/error.h"
#include "base/log.h"

struct sandbox_config {
	const char *python;         /* lent during _new: a path or a name in PATH */
	const char *const *preload; /* lent during _new: modules, NULL-terminated, or NULL */
	size_t worker_memory;       /* bytes for one worker, beside its inputs */
	size_t pool_memory;  /* bytes for all workers together; 0: half of what there is for us */
	unsigned pool_parts; /* where that is 0: one of so many parts of it; 0: all of it */
	const char *worker_dir; /* lent during _new: where template.py is */
	uint32_t first_uid;     /* of those for workers, as root; 0: UIDS_FIRST of uids.h */
	const char *cache;      /* lent during _new: for caches, absolute; NULL: nothing is kept */
	const struct log *log;  /* lent for good; NULL: nobody hears */

	/*
	 * For tests: how long each word of the template, of the first worker and of a script
	 * that stands for the interpreter may take, on the first of two tries. 0: 30 s.
	 */
	int patience_ms;

	/*
	 * For tests and `rlmd doctor`: names from steps.def, separated by commas, that fail
	 * as if the kernel had refused them. Lent during _new; NULL for none.
	 */
	const char *without;
};

struct rlmd_sandbox;

/*
 * Finds the interpreter, builds the filter, starts the template in the best mode
 * whose walls stand in a worker that was tried, and waits until it is ready. A worker that is
 * killed or slow meanwhile gets a second try with twice the time. NULL and RLMD_ERROR_USAGE for an
 * interpreter or a preloaded module that will not do, RLMD_ERROR_SANDBOX where the walls cannot be
 * raised, or not in time. Templates that take its place later reach the same, or fail.
 */
struct rlmd_sandbox *sandbox_new(struct event_base *, const struct sandbox_config *,
				 struct rlmd_error *);

/*
 * The same in two parts. The first starts the template, which loads by itself, and waits for
 * nothing but a script that stands for the interpreter. Until the second has said true it is good
 * for nothing; after false, with the errors above, only for sandbox_free().
 */
struct rlmd_sandbox *sandbox_begin(struct event_base *, const struct sandbox_config *,
				   struct rlmd_error *);
bool sandbox_await(struct rlmd_sandbox *, struct rlmd_error *);

/* Told from the loop, where that turns between the two: there is little left to wait for, or the
 * template has failed. */
void sandbox_on_ready(struct rlmd_sandbox *, rlmd_sandbox_ready_fn *, void *owner);

void sandbox_free(struct rlmd_sandbox *); /* ends the template; processes must be freed before */

/* In the child of a fork, before it is freed: nothing that the parent uses is touched any more. */
void sandbox_cut(struct rlmd_sandbox *);

/*
 * The `sandbox` of results and traces, new: {"level": "L1".."L4", "mode": "root" or
 * "userns" or "uid" or "plain", "layers": [name...], "absent": [{"layer", "call",
 * "errno", "remedy"}...]}. The tables: layers.def, modes.def, steps.def.
 */
json_t *sandbox_report(const struct rlmd_sandbox *);

/* Whether its processes can have an input as a str where it lies: the file is none of their memory,
 * nor of any limit here. */
bool sandbox_maps_texts(const struct rlmd_sandbox *);

/* The modules that workers have loaded, up to a NULL; lent. */
const char *const *sandbox_preload(const struct rlmd_sandbox *);

/* The version of their Python, as "3.11"; lent. NULL: its file's name does not say it. */
const char *sandbox_python_version(const struct rlmd_sandbox *);

/* A process of a worker: exit is told once, with what it used. */
struct process;

#define PROCESS_REASON_SIZE 128

struct process_exit {
	bool unknown; /* somebody else has reaped it: how it ended and what it used is lost */
	bool signaled;
	int status;                       /* exit status, or the signal's number */
	int64_t cpu_ms;                   /* user and system */
	char reason[PROCESS_REASON_SIZE]; /* the limit that it was killed for, or "" */
};

/* For a process that ended before it said anything: the wall that did not stand, or NULL. */
const char *process_exit_wall(const struct process_exit *);

typedef void process_exit_fn(void *owner, const struct process_exit *);

/* The result of sandbox_spawn(): the process, and our ends of the pipes to it. */
struct spawned {
	struct process *process;
	int from, to; /* that it writes to, and that it reads from */
};

/* All of `spawned` is the receiver's; NULL where it failed, and then `err` says why. */
typedef void sandbox_spawn_fn(void *owner, const struct spawned *spawned,
			      const struct rlmd_error *err);

struct spawn;

/*
 * Asks for a process with a pipe to read from and one to write to as descriptors 3
 * and 4, and `files` (memory files, lent during the call) as 5, 6, ...
 * `extra_memory` is added to worker_memory for its inputs. Where the template is
 * lost, the next one is asked. The callback comes from the loop, once, unless
 * spawn_cancel() came before it.
 */
struct spawn *sandbox_spawn(struct rlmd_sandbox *, const int *files, size_t file_count,
			    size_t extra_memory, sandbox_spawn_fn *, void *owner);
void spawn_cancel(
	struct spawn *); /* kills what was started; NULL is fine; not after the callback */

/* Sets the owner, who hears of its exit; before that the exit is only noted. */
void process_on_exit(struct process *, process_exit_fn *, void *owner);
void process_interrupt(struct process *); /* SIGINT: Python raises KeyboardInterrupt */
void process_kill(struct process *);      /* SIGKILL */
void process_free(struct process *);      /* kills it if need be, and sees to its reaping */
pid_t process_pid(const struct process *);
int64_t process_cpu_ms(const struct process *); /* user and system, so far; -1: not known */
