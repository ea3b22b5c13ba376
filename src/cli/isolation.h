/*
 * cli/isolation.h - the sandbox as a command's settings ask for it, and whether it is enough.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#include "base/error.h"
#include "cli/config.h"
#include "sandbox/sandbox.h"

/* As sandbox_new(), with what --python, --preload and --worker-memory say. The log is lent for
 * good.
 */
struct rlmd_sandbox *isolation_open(struct event_base *, const struct config *, const struct log *,
				    struct rlmd_error *);

/* Whether a report of sandbox_report() reaches `level` ("L1" .. "L4"; NULL: any will do);
 * RLMD_ERROR_SANDBOX where not. */
bool isolation_suffices(const json_t *report, const char *level, struct rlmd_error *);
