/*
 * store/script.h - what the operations of a store are, in SQL.
 *
 * scripts.def says it once for all databases; where they differ, it names macros, which each
 * database defines. A script is one transaction.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum script {
	SCRIPT_OPEN, /* nothing: ends when the store is open */
#define SCRIPT(script, access, types) SCRIPT_##script,
#define STATEMENT(script, turns, rows, sql)
#define NOTIFY(script)
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

bool script_writes(enum script);

/* Of its parameters, one letter each: i(nteger), t(ext), b(ytes). */
const char *script_types(enum script);

/* How many parameters a statement has: the highest $N. */
size_t statement_width(const char *sql);
