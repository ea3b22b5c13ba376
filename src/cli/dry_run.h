/*
 * cli/dry_run.h - the objects of rlmd_job_dry_run(), for a person to read.
 */
#pragma once

#include <event2/buffer.h>
#include <jansson.h>

/* Where most of the tokens are, as the rest of a sentence; nothing where they are everywhere. */
void dry_run_largest(const json_t *, struct evbuffer *out);

void dry_run_format(const json_t *, struct evbuffer *out); /* of a task */
void dry_run_format_plan(const json_t *, struct evbuffer *out);
