/* base/thread.h - threads that hear no signals: those are the loop's. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"

/* Runs `work` with all signals blocked; whoever starts it joins it. RLMD_ERROR_INTERNAL where the
 * system has no room for one more. */
bool thread_start(pthread_t *ret, void *(*work)(void *), void *owner, struct rlmd_error *);
