/*
 * lister/seal.h - takes from this process all that reading does not need, for good.
 *
 * Strangers' bytes are read behind it. A filter (seccomp/lister.def) leaves no socket, no program,
 * no process and no file to be written; Landlock, where the kernel has it, leaves no file but those
 * that are to be read; and a limit of memory ends it before the machine is short of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SEAL_MEMORY ((uint64_t)4 << 30) /* bytes of its own; files that are mapped do not count */

/* `roots`, those of them that are not NULL: directories of which all may be read.
 * RLMD_ERROR_SANDBOX where the filter is refused. */
bool seal(const char *const *roots, size_t count, struct rlmd_error *);

/* From now on so many seconds of processor time, then the kernel ends the process (SIGPROF). */
void seal_allow_seconds(unsigned seconds);
