/*
 * net/sockets.h - the sockets that libcurl has open, found by their own port.
 *
 * libcurl 7.88 uses a kept connection again also where something has come on it meanwhile, and
 * takes that for the answer to the next request: a server that answers twice, or too late, would be
 * one answer behind from then on, whoever asks.
 */
#pragma once

#include <stdbool.h>

struct sockets;
struct sockets *sockets_new(void);
void sockets_free(struct sockets *); /* closes none; NULL is fine */

void sockets_add(struct sockets *, int fd); /* lent, until it is removed */
void sockets_remove(struct sockets *, int fd);

/* In the child of a fork: nothing that is said on them arrives (base/file.h). */
void sockets_cut(struct sockets *);

/* TLS has a word to say behind its handshake, which is no answer, and which nobody reads before the
 * first request: the next look at the connection from this port is to find nothing but its end. */
void sockets_greet(struct sockets *, int port);

/* Whether something has come on the connection from this port that nobody has read. Two of them may
 * have one port, to different servers: then either. */
bool sockets_unread(struct sockets *, int port);
