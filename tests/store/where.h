/* where.h - the places of the stores that a test uses: one kind of database for a test program. */
#pragma once

#include <stdbool.h>

/* A directory of its own, removed by the end; a failed assertion where it cannot be. */
void where_begin(void);
void where_end(void);

/* A place for store_open() where no store is yet; lent until the next. */
const char *where_fresh(void);

/* The path of a name in the directory; lent until the next call. */
const char *where_path(const char *name);
