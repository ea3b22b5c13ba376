/* server.h - a PostgreSQL server of a test's own, in a directory of the test's. */
#pragma once

#include <stdbool.h>

/* Why there can be none; NULL where there can. */
const char *server_missing(void);

/* A new cluster in this directory, which is made; runs as nobody where we are root. It listens in
 * that directory alone, keeps nothing safe from a crash of the machine, and ends with us. */
void server_make(const char *directory);
void server_start(void);
void server_kill(void); /* at once, as by SIGKILL, with all of its processes */
void server_stop(void);

/* Asks it something, as its administrator. */
void server_ask(const char *sql);

/* The address of its database; lent, for good. */
const char *server_address(void);
