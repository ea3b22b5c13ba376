/*
 * batch/metrics.h - a scoreboard as Prometheus reads it: its text format, version 0.0.4.
 *
 * batch/metrics.def lists the metrics. Tenants beyond the first METRICS_TENANTS_MAX are told as one
 * sum, so that a batch cannot make more series than a server can hold.
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
