/*
 * cli/serve_client.h - one client of a process that stays: its methods.
 */
#pragma once

#include "cli/serving.h"

/* Over descriptors that are lent and do not block. Their end is told by serve_lose(). */
struct serve_client *serve_client_new(struct serve *, int in, int out);

/* At the other end of a socket, which it takes over; likewise. */
struct serve_client *serve_client_accept(struct serve *, int socket, uid_t);

/* All that it has begun ends, without a word. NULL is fine. */
void serve_client_free(struct serve_client *);

/* No new work; what there is has the grace to end. */
void serve_client_drain(struct serve_client *);

/* It has nothing under way. */
bool serve_client_is_idle(const struct serve_client *);
