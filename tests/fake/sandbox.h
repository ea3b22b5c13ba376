/*
 * fake/sandbox.h - sandbox/sandbox.h for tests of what is above it: no walls, no Python.
 *
 * A process is a fork of the test that runs a function, its script, with the
 * two descriptors of a worker. So a script can be honest, or lie as no Python
 * program would.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

#include "sandbox/sandbox.h"

enum { FAKE_WALL_EXIT = 99 }; /* exit status of a script that means a wall which did not stand */

/* Reads from `in`, writes to `out`; the process ends when it returns, with that status. */
typedef int fake_script_fn(int in, int out);

struct rlmd_sandbox *fake_sandbox_new(struct event_base *);

void fake_sandbox_script(struct rlmd_sandbox *, fake_script_fn *); /* of the next processes */
void fake_sandbox_refuse(struct rlmd_sandbox *, bool refuse);      /* the next spawns fail */
void fake_sandbox_condemn(struct rlmd_sandbox *,
			  const char *why);                 /* lent: of all that are killed */
void fake_sandbox_spare(struct rlmd_sandbox *, bool spare); /* process_kill() does nothing */
void fake_sandbox_map(struct rlmd_sandbox *, bool maps);    /* what sandbox_maps_texts() tells */
size_t fake_sandbox_memory(const struct rlmd_sandbox *);    /* extra_memory of the last */
ino_t fake_sandbox_file(const struct rlmd_sandbox *, int spawn); /* the first that one was given */
int fake_sandbox_interrupts(const struct rlmd_sandbox *);        /* process_interrupt() so far */
int fake_sandbox_living(const struct rlmd_sandbox *);            /* processes not yet freed */
