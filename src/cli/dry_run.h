/*
 * cli/dry_run.h - what --dry-run shows.
 */
#pragma once

#include <event2/buffer.h>
#include <jansson.h>

/* The object of rlmd_job_dry_run() for a person to read, of a task. */
void dry_run_format(const json_t *, struct evbuffer *out);

/* Of it, and of a plan's: the cost, with its limit, behind a label; what it takes to have
 * everything read once; and what one request is. */
void dry_run_format_cost(const json_t *, struct evbuffer *out);
void dry_run_format_reading(const json_t *, struct evbuffer *out);
void dry_run_format_request(const json_t *, struct evbuffer *out);
