/* sandbox/pipes.h - the two pipes between us and a worker. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Each side gets what it reads from and what it writes to. RLMD_ERROR_SANDBOX where there are none.
 */
bool pipes_open(int ret_ours[2], int ret_theirs[2], struct rlmd_error *);
