/*
 * engine/capacity.h - how many workers and model calls at once this machine can have.
 *
 * There is no limit of ours on either: what is refused is what cannot be, with
 * what stands in the way. What is accepted may still meet other users of the
 * machine, and then a worker or a call fails and says of what.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* RLMD_ERROR_USAGE: what allows how many. */
bool capacity_check(size_t workers, size_t calls, struct rlmd_error *);
