/*
 * cli/status_text.h - the status of a store's batches (batch/store_status.h) as people read it.
 */
#pragma once

#include <jansson.h>

struct evbuffer;

/* Appends a line for each batch, and behind it those of its tenants, of the providers that it has
 * stopped asking, and of the nodes that work for it. */
void status_text_write(const json_t *status, struct evbuffer *out);
