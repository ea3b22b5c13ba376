/* batch/notices.h - what the user of a batch is told as it goes on: each a new string. */
#pragma once

#include <rlmd/rlmd.h>
#include <stddef.h>
#include <stdint.h>

/* No job of a tenant ("": nobody's) is begun any more. */
char *notice_refused(const char *tenant, const struct rlmd_error *why);
char *notice_halted(int64_t failed, int64_t ended);
char *notice_level(const char *level);
