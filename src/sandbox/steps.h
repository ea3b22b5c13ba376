/*
 * sandbox/steps.h - tries a step, and notes where the kernel refused it.
 *
 * Shared with worker/. Every system call that a wall rests on is made through
 * STEP_TRY(), so that each can be made to fail in its place (struct sandbox_config).
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/launch.h"

struct steps {
	uint64_t without; /* that fail, a bit each, as if the kernel had refused them */
	uint16_t mode;    /* that is being tried */
	size_t count;
	struct launch_failure failures[LAUNCH_FAILURES_MAX]; /* what does not fit is lost */
};

/* -1 and errno where it fails, like the call itself. */
#define STEP_TRY(steps, step, call)                                                                \
	steps_note((steps), STEP_##step, steps_break((steps), STEP_##step) ? -1 : (long)(call))

static inline bool steps_break(const struct steps *steps, enum step step)
{
	static const int errors[] = {
#define STEP(name, loss, call, error, remedy) [STEP_##name] = error,
#include "sandbox/steps.def"
#undef STEP
	};

	if (!(steps->without >> step & 1))
		return false;
	errno = errors[step];
	return true;
}

static inline long steps_note(struct steps *steps, enum step step, long result)
{
	if (result < 0 && steps->count < LAUNCH_FAILURES_MAX)
		steps->failures[steps->count++] = (struct launch_failure){
			steps->mode,
			(uint16_t)step,
			errno,
		};
	return result;
}
