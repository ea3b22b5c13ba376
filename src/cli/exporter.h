/*
 * cli/exporter.h - a text for programs that ask for it by HTTP, as Prometheus does.
 *
 * libevent's evhttp reads the requests. GET and HEAD of /metrics and of /healthz are answered, and
 * nothing else: one request a connection, of a few kilobytes, within seconds, and so many
 * connections at once; further ones wait in the kernel's queue.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

struct evbuffer;
struct event_base;
struct exporter;

/* Appends the text as it is now. */
typedef void exporter_fn(void *owner, struct evbuffer *out);

/* Whether a word means "[ADDRESS]:PORT", and not a file. */
bool exporter_is_endpoint(const char *word);

/* ":PORT" is of this machine alone; port 0 is any. RLMD_ERROR_USAGE where it cannot be had. */
struct exporter *exporter_new(struct event_base *, const char *endpoint, exporter_fn *, void *owner,
			      struct rlmd_error *);
void exporter_free(struct exporter *); /* NULL is fine */

/* "http://127.0.0.1:9464/metrics"; lent. */
const char *exporter_url(const struct exporter *);

/*
 * Whether a Host header asks for a host that can only be this one: an address in numbers,
 * localhost, or `own`, the machine's name. If an attacker's own domain leads here (DNS rebinding),
 * a browser could otherwise read the answer for him.
 */
bool exporter_is_own_host(struct rlmd_text value, const char *own);
