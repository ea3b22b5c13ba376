/*
 * store/postgres_setup.h - what is said to a server before it is asked for anything, and what its
 * complaints mean.
 */
#pragma once

#include <libpq-fe.h>
#include <stdbool.h>

#include "store/query.h"

/* Begins to connect; NULL only for want of memory. The caller's: PQfinish(). */
PGconn *postgres_connect(const char *place);

/* What libpq says of a connection, without a password that it took for something else. */
const char *postgres_complaint(const PGconn *, const char *place);

/* What keeps a connection from being made: AWAY, or USAGE where the server refuses us. */
enum store_fault postgres_why_not(const PGconn *);

/*
 * Sends what brings the schema up to date, under its lock, and waits no longer than this for
 * others' locks, now and later; one answer comes for all of it.
 */
bool postgres_send_setup(PGconn *, int64_t patience_ms);

/* In pipeline mode: prepares all statements, each under the name of its place in the table. */
bool postgres_send_statements(PGconn *);

/* In pipeline mode: a query's statements. */
bool postgres_send_query(PGconn *, const struct query *);

/* How many answers come for a query, one for each statement and set, and which the next is. */
struct postgres_turn {
	size_t statement, set;
	bool tells;
};

/* The first turn of a query, or the one after this; false: there are no more. */
bool postgres_first(const struct query *, struct postgres_turn *ret);
bool postgres_next(const struct query *, struct postgres_turn *);

/* Keeps the rows of an answer. */
void postgres_keep_rows(struct query *, size_t set, const PGresult *);

/* What an answer that is an error says; STORE_FINE: the same is worth asking again at once. */
enum store_fault postgres_fault(const PGresult *);

/* Fails a query for it. */
void postgres_fail(struct query *, enum store_fault, const char *message);
