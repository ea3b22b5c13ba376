#include "where.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = "/tmp/test_store.XXXXXX";
static char place[128], path[128];
static int places;

void where_begin(void)
{
	assert_non_null(mkdtemp(directory));
}

const char *where_fresh(void)
{
	snprintf(place, sizeof place, "sqlite:%s/store-%d", directory, places++);
	return place;
}

const char *where_path(const char *name)
{
	snprintf(path, sizeof path, "%s/%s", directory, name);
	return path;
}

static int on_name(const char *name, const struct stat *status, int kind, struct FTW *walk)
{
	(void)status;
	(void)kind;
	(void)walk;
	return remove(name);
}

void where_end(void)
{
	assert_int_equal(nftw(directory, on_name, 8, FTW_DEPTH | FTW_PHYS), 0);
}
