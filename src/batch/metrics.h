/*
 * batch/metrics.h - a scoreboard as Prometheus reads it: its text format, version 0.0.4.
 *
 * What there is stands in batch/metrics.def. Of tenants beyond the first METRICS_TENANTS_MAX there
 * is one sum, so that nobody's names make more series than a server bears.
 */
#pragma once

#include <stdint.h>

struct evbuffer;
struct scoreboard;

enum { METRICS_TENANTS_MAX = 200 };

#define METRICS_OTHERS "(others)" /* the tenant whose name stands for the sum */

/* Appends all of it. `batch` NULL: several, one after the other, and their name is empty. */
void metrics_write(const struct scoreboard *, const char *batch, int64_t began_wall_ms,
		   struct evbuffer *out);
