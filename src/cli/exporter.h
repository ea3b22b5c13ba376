/*
 * cli/exporter.h - a text, for whoever asks for it by HTTP: what Prometheus calls an exporter.
 *
 * It answers GET and HEAD of /metrics, and of /healthz, and nothing else; one request a connection,
 * of a few kilobytes, within seconds, and so many connections at once. Who has none waits in the
 * kernel's line.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct evbuffer;
struct event_base;
struct exporter;

/* Appends what there is to say now. */
typedef void exporter_fn(void *owner, struct evbuffer *out);

/* Whether a word means "[ADDRESS]:PORT", and not a file. */
bool exporter_is_place(const char *word);

/* ":PORT" is of this machine alone; port 0 is any. RLMD_ERROR_USAGE where it cannot be had. */
struct exporter *exporter_new(struct event_base *, const char *place, exporter_fn *, void *owner,
			      struct rlmd_error *);
void exporter_free(struct exporter *); /* NULL is fine */

/* "http://127.0.0.1:9464/metrics"; lent. */
const char *exporter_url(const struct exporter *);
