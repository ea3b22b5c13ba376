/* base/prometheus.h - metrics as Prometheus reads them: its text format, version 0.0.4. */
#pragma once

#include <stddef.h>

struct evbuffer;

struct prometheus_label {
	const char *name, *value; /* lent; a value that is NULL: there is no such label */
};

/* The lines in front of a metric's samples. */
void prometheus_head(struct evbuffer *out, const char *name, const char *type, const char *help);

/* A sample up to its number, which the caller appends with a line feed: `jobs{state="failed"} `. */
void prometheus_sample(struct evbuffer *out, const char *name, const struct prometheus_label *,
		       size_t count);
