/*
 * tests/cli/directory.h - a directory for each test, in which it works.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"

static char *directory; /* owned, absolute */

/* Makes it, and goes there. Returns 0, as a set-up of cmocka's has to. */
static inline int directory_enter(void)
{
	const char *tmp = getenv("TMPDIR");

	directory = xasprintf("%s/rlmd-test-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(directory));
	return chdir(directory);
}

/* Removes these files (up to a NULL) as far as they are there, and the directory. Not 0: something
 * else was left in it. */
static inline int directory_leave(const char *const *names)
{
	for (; *names; names++)
		unlink(*names);
	if (chdir("/") || rmdir(directory))
		return 1;
	free(directory);
	return 0;
}

static inline void assert_content(const char *path, const char *wanted)
{
	auto_free char *content = file_read(path, 1 << 20, NULL, NULL);

	assert_non_null(content);
	assert_string_equal(content, wanted);
}
