/*
 * store/postgres.h - a store in a database of PostgreSQL, asked from the event loop.
 *
 * One connection, in pipeline mode: an operation does not wait for the answer of the one before it.
 * Where the connection breaks, what was not answered is asked for again on the next one, in order:
 * whether it was done, nobody knows, and every script may run twice.
 *
 * The tables stand in a schema of their own, "rlmd", which is made or brought up to date on each
 * connection, under an advisory lock.
 */
#pragma once

#include "store/database.h"

extern const struct database_kind postgres_kind; /* `place` is a connection URI */
