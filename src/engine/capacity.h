/*
 * engine/capacity.h - how many workers and model calls at once this machine can have.
 *
 * There is no limit of ours on either: a number is refused that this machine cannot have, with the
 * limit that stands in the way. A number that is accepted may still meet other users of the
 * machine; then a worker or a call fails, and says why.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* RLMD_ERROR_USAGE: what allows how many. */
bool capacity_check(size_t workers, size_t calls, struct rlmd_error *);
