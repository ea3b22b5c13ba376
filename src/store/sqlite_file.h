/*
 * store/sqlite_file.h - a database of SQLite as a store has it: opened, brought up to date, asked.
 *
 * Everything here waits; it is for one thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/query.h"

struct sqlite_file;

struct sqlite_file_options {
	const char *path;        /* lent: absolute */
	int64_t patience_ms;     /* how long others' locks are waited for; 0: as long as it takes */
	bool existing;           /* no file is made */
	const atomic_bool *stop; /* lent: ends what waits for a lock, and what goes on for long */
	/* With patience without an end: another process has held a lock for some time; or no more.
	 */
	void (*held)(void *owner, bool held);
	void *owner;
};

/*
 * Owned by the caller. NULL where it cannot be used: `query` has failed, and says why.
 *
 * Only we and root may be able to write the file, or what SQLite keeps beside it, and none of
 * them is a link. Its schema is exactly what the migrations make.
 */
struct sqlite_file *sqlite_file_open(const struct sqlite_file_options *, struct query *);
void sqlite_file_close(struct sqlite_file *); /* NULL is fine */

/*
 * All queries of a line as one transaction, durable when this is true. Otherwise nothing was
 * written, and none has rows: a lone query says why; of several none has a fault, and each is to be
 * tried alone.
 */
bool sqlite_file_run(struct sqlite_file *, struct query_line *);

/* A number that changes when somebody else writes. */
int64_t sqlite_file_version(struct sqlite_file *);
