/* cli/plan_dry_run.h - what --dry-run shows of a plan. */
#pragma once

#include <event2/buffer.h>
#include <jansson.h>

/* The object of rlmd_job_dry_run() for a person to read. */
void plan_dry_run_format(const json_t *, struct evbuffer *out);
