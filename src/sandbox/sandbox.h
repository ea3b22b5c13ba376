/*
 * sandbox/sandbox.h - confined python3 processes, forked from one template.
 *
 * Owns the template: a python3 that has loaded the standard library and forks
 * on request. Between the fork and the first foreign byte, worker/_rlmd.c puts
 * the sealed filter on and proves that it stands. A process that was handed
 * out here is confined, or was never handed out. What it says over its pipes
 * is not known on this floor.
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct sandbox_config {
	const char *python;         /* lent during _new: a path or a name in PATH */
	const char *const *preload; /* lent during _new: modules, NULL-terminated, or NULL */
	size_t worker_memory;       /* bytes for one worker, beside its inputs */
	const char *worker_dir;     /* lent during _new: where template.py is */
};

struct sandbox;

/*
 * Finds the interpreter, builds the filter, starts the template; returns
 * before the template is ready: spawns wait for it. NULL and ERROR_USAGE for an
 * interpreter that is missing or too old, ERROR_SANDBOX where the walls cannot
 * be raised.
 */
struct sandbox *sandbox_new(struct event_base *, const struct sandbox_config *, struct error *);
void sandbox_free(struct sandbox *); /* ends the template; processes must be freed before */

/* {"level": "L1", "mode": "...", "layers": [...]}, new: the `sandbox` of results and traces. */
json_t *sandbox_report(const struct sandbox *);

/* A process of a worker: exit is told once, with what it used. */
struct process;

struct process_exit {
	bool signaled;
	int status;      /* exit status, or the signal's number */
	int64_t cpu_ms;  /* user and system */
	int64_t max_rss; /* bytes */
};

/* For a process that ended before it said anything: the wall that did not stand, or NULL. */
const char *process_exit_wall(const struct process_exit *);

typedef void process_exit_fn(void *owner, const struct process_exit *);
/* `process` is owned by the receiver; NULL where it failed, and then `err` says why. */
typedef void sandbox_spawn_fn(void *owner, struct process *process, const struct error *err);

struct spawn;

/*
 * Asks for a process with `in` (it reads) and `out` (it writes) as descriptors 3
 * and 4, and `files` (memory files, lent during the call) as 5, 6, ... `in` and
 * `out` are taken. `extra_memory` is added to worker_memory for its inputs.
 * The callback comes from the loop, once, unless spawn_cancel() came before it.
 */
struct spawn *sandbox_spawn(struct sandbox *, int in, int out, const int *files, size_t file_count,
			    size_t extra_memory, sandbox_spawn_fn *, void *owner);
void spawn_cancel(
	struct spawn *); /* kills what was started; NULL is fine; not after the callback */

/* Whoever owns a process says who hears of its exit; before that it is only noted. */
void process_on_exit(struct process *, process_exit_fn *, void *owner);
void process_interrupt(struct process *); /* SIGINT: Python raises KeyboardInterrupt */
void process_kill(struct process *);      /* SIGKILL */
void process_free(struct process *);      /* kills it if need be, and sees to its reaping */
pid_t process_pid(const struct process *);
int64_t process_cpu_ms(const struct process *); /* user and system, so far; -1: not known */
