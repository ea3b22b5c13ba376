#include "where.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "server.h"

static char directory[] = "/tmp/test_store.XXXXXX";
static char place[128], path[128];
static bool in_server;
static int places;

void where_begin(bool postgres)
{
	assert_non_null(mkdtemp(directory));
	in_server = postgres;
	if (!postgres)
		return;
	assert_int_equal(chmod(directory, 0711), 0); /* the server may be somebody else's */
	server_make(where_path("server"));
	server_start();
}

const char *where_fresh(void)
{
	if (in_server) {
		server_ask("DROP SCHEMA IF EXISTS rlmd CASCADE");
		return server_address();
	}
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
	if (in_server)
		server_stop();
	assert_int_equal(nftw(directory, on_name, 8, FTW_DEPTH | FTW_PHYS), 0);
}
