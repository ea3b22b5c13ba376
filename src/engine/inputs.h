/* engine/inputs.h - the inputs of a context, as a worker is given them. */
#pragma once

#include "pool/worker.h"
#include "source/context.h"

/* All lent by the context; returns how many there are. */
size_t inputs_of(const struct context *, struct worker_input ret[static WORKER_INPUTS_MAX]);
