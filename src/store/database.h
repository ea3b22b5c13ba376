/*
 * store/database.h - what runs the queries of a store: SQLite or PostgreSQL.
 *
 * A database runs queries in the order in which it gets them, each as a transaction, and ends each
 * with query_end() in the event loop, when what it wrote is durable. PostgreSQL may refuse one for
 * the locks of others; it is run again, behind at most 63 that were sent after it. A query that has
 * a fault already is ended in its turn, unrun. A query of SCRIPT_OPEN ends when the database can be
 * used, or with the reason why not; then all others end with the same.
 */
#pragma once

#include "store/query.h"

struct event_base;

struct database_kind {
	/* NULL: RLMD_ERROR_INTERNAL, the system has no thread to give; RLMD_ERROR_USAGE, there is
	 * no libpq. */
	void *(*open)(struct event_base *, const char *address, const struct store_options *,
		      struct rlmd_error *);
	void (*run)(void *database, struct query *); /* takes the query over */
	void (*free)(void *database); /* drops the queries that it has; no callback follows */
};

extern const struct database_kind sqlite_kind;   /* `address` is a path */
extern const struct database_kind postgres_kind; /* `address` is a connection URI */
