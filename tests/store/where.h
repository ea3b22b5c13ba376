/* where.h - the places of the stores that a test uses, all in a directory of its own. */
#pragma once

#include <stdbool.h>

/* A failed assertion where it cannot be made. With `postgres`, stores are in one server, which is
 * started here and stopped in the end. */
void where_begin(bool postgres);
void where_end(void);

/* A place for store_open() where no store is yet; lent until the next. Of a server there is one,
 * and what was in it goes. */
const char *where_fresh(void);

/* The path of a name in the directory; lent until the next call. */
const char *where_path(const char *name);
