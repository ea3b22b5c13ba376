/*
 * pool/boot.h - from what a worker is to be started with to its process.
 */
#pragma once

#include <event2/event.h>

#include "pool/worker.h"
#include "sandbox/sandbox.h"

/* The inputs of `options`, each in the form that a worker of this sandbox gets it in. */
void boot_choose(const struct rlmd_sandbox *, const struct worker_options *options,
		 struct worker_input ret[static WORKER_INPUTS_MAX]);

struct boot;

/* `options` are lent during the call, with their forms chosen. The callback is as that of
 * sandbox_spawn(), or RLMD_ERROR_INPUT where an input cannot be made ready. */
struct boot *boot_start(struct event_base *, struct rlmd_sandbox *, const struct worker_options *,
			sandbox_spawn_fn *, void *owner);
void boot_cancel(struct boot *); /* NULL is fine; not after the callback */
