/*
 * cli/batch_report.h - what is said of a batch at its end: nothing that went wrong is left out.
 *
 * One object has all of it, for programs and for the lines that people read.
 */
#pragma once

#include <jansson.h>

struct scoreboard;
struct summary;

/* {"batch": ..., "jobs": ..., "succeeded", "failed", "pending", "badLines", "kinds": {...},
 * "halted", "cost", "tokens", "tenants": [{"tenant", "succeeded", ..., "stopped", "why"}]}, new.
 * `name` NULL: several batches, of which the tenants are those of the last. */
json_t *batch_report_new(const struct summary *, const struct scoreboard *, const char *name);

/* An error for each reason why jobs have no answer, with what to do; `results` is the file of
 * results; NULL: the store has them. */
void batch_report_tell(const json_t *report, const char *results);
