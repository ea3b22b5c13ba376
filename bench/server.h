/* bench/server.h - a server beside the benchmark, in a process of its own: bench/model. */
#pragma once

#include <sys/types.h>

struct server {
	pid_t pid;
	char url[64]; /* http://127.0.0.1:PORT */
};

/*
 * Starts a program, whose arguments NULL ends, that prints its port in a line of its own. It is
 * killed by server_stop(), and by the kernel where the benchmark ends without that.
 */
struct server server_start(const char *program, ...) __attribute__((sentinel));
void server_stop(struct server *);
