/*
 * store/query.h - one operation on its way: its script, what goes into it, the rows that come back.
 *
 * A store makes it, a database runs it, and gives it to query_end() in the event loop; the store
 * reads its rows and frees it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "base/text.h"
#include "store/values.h"

/*
 * The operations of a store, in SQL: scripts.def says them once for all databases; where
 * they differ, it names macros, which each database defines. A script is one transaction.
 */
enum script {
	SCRIPT_OPEN, /* nothing: ends when the store is open */
#define SCRIPT(script, access, types) SCRIPT_##script,
#define STATEMENT(script, turns, rows, sql)
#define NOTIFY(script, rows)
#include "store/scripts.def"
#undef SCRIPT
#undef STATEMENT
#undef NOTIFY
	SCRIPTS,
};

struct statement {
	enum script script;
	bool each;  /* runs once for each set of parameters, otherwise with the first one only */
	bool tells; /* its rows are the script's */
	const char *sql;
};

bool query_script_writes(enum script);

/* Of its parameters, one letter each: i(nteger), t(ext), b(ytes). */
const char *query_script_types(enum script);

/* How many parameters a statement has: the highest $N. */
size_t query_width(const char *sql);

/* An integer, or bytes. */
struct value {
	bool is_integer;
	int64_t integer;
	struct rlmd_text text; /* owned by the query */
};

struct query {
	TAILQ_ENTRY(query) entry; /* in the line of whoever has it */
	enum script script;
	size_t sets, width;   /* of parameters: a script's EACH statements run once for each set */
	struct value *params; /* owned */
	size_t rows, columns; /* of what the script's telling statement gave */
	struct value *cells;  /* owned */
	size_t *row_sets;     /* owned: which set each row is for */
	enum store_fault fault;
	struct rlmd_error error;
	store_fn *fn; /* or NULL: forgotten */
	void *owner;  /* lent: fn's */
};

TAILQ_HEAD(query_line, query);

struct query *query_new(enum script, size_t sets, store_fn *, void *owner);
void query_free(struct query *); /* NULL is fine */

/* The next parameter, in the order of the script's; copies. A value out of range fails the query.
 */
void query_put(struct query *, int64_t);
void query_put_ms(struct query *, int64_t ms);
void query_put_amount(struct query *, int64_t cost, int64_t tokens); /* two parameters */
void query_put_text(struct query *, struct rlmd_text);

/* A row of so many cells, which the caller fills; all rows of a query have as many. */
struct value *query_add_row(struct query *, size_t set, size_t columns);
void query_set_value(struct value *, struct rlmd_text); /* copies */

/* The rows go: it is to be run again. */
void query_reset(struct query *);

const char *query_fault_meaning(enum store_fault); /* static, for people */

/* Notes why it failed; always false. */
bool query_fail(struct query *, enum store_fault, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* One cell; 0, or the empty text, where a damaged store has something else. */
int64_t query_integer(const struct query *, size_t row, size_t column);
struct rlmd_text query_text(const struct query *, size_t row, size_t column);

/* Tells its owner and frees it. */
void query_end(struct query *);

/* Frees all of a line; nobody is told. */
void query_drop_all(struct query_line *);
