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

/*
 * Owned by the caller. NULL where it cannot be used: `query` has failed, and says why. Others'
 * locks are waited for for so long, or until `stop` is set (lent).
 */
struct sqlite_file *sqlite_file_open(const char *path, int64_t patience_ms, const atomic_bool *stop,
				     struct query *);
void sqlite_file_close(struct sqlite_file *); /* NULL is fine */

/*
 * All queries of a line as one transaction, durable when this is true. Otherwise nothing was
 * written, and none has rows: a lone query says why; of several none has a fault, and each is to be
 * tried alone.
 */
bool sqlite_file_run(struct sqlite_file *, struct query_line *);

/* A number that changes when somebody else writes. */
int64_t sqlite_file_version(struct sqlite_file *);
