/*
 * cli/serve_socket.h - the socket at which clients come: a path of this machine, unix(7).
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct serve_socket;

/* A connection of that user, which does not block and is the callee's to close. From the loop. */
typedef void serve_socket_fn(void *owner, int fd, uid_t uid);

/*
 * Listens at "unix:PATH", or takes the socket over that a service manager has opened there. A file
 * that it makes is for its own user alone (0600); one that a dead server left is replaced.
 * RLMD_ERROR_USAGE: that is no such address, another server listens there, or it cannot be made.
 */
struct serve_socket *serve_socket_open(struct event_base *, const char *address, serve_socket_fn *,
				       void *owner, struct rlmd_error *);

/* While it does not accept, clients wait in line. */
void serve_socket_accept(struct serve_socket *, bool accepts);

/* Removes the file that it has made. NULL is fine. */
void serve_socket_free(struct serve_socket *);
