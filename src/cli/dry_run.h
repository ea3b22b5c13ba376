/*
 * cli/dry_run.h - what --dry-run shows.
 */
#pragma once

#include <event2/buffer.h>
#include <jansson.h>
#include <stdint.h>

/* The object of engine_dry_run() for a person to read; `max_cost` is the limit. */
void dry_run_format(const json_t *, int64_t max_cost, struct evbuffer *out);

/* Of it, and of a plan's: what request_tell() added. */
void dry_run_format_request(const json_t *, struct evbuffer *out);
