/*
 * sandbox/python.h - the interpreter behind a name.
 *
 * A template must be the interpreter itself: a shell script in its place (the
 * shims of version managers) is asked which one it would have started.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

/*
 * The absolute path, new, of the interpreter that `name` (a path, or a name in
 * PATH) stands for. Links are left as they are, for a virtual environment is
 * known by where its link stands. NULL and RLMD_ERROR_USAGE where there is none.
 * Blocks while a script is asked, for at most `patience_ms`, and where that was not
 * enough, or it was killed, once more for twice as long; then RLMD_ERROR_SANDBOX.
 */
char *python_find(const char *name, int64_t patience_ms, struct rlmd_error *);

/* "3.11" of an interpreter whose file is named python3.11, behind all links: new. Else NULL. */
char *python_version(const char *path);
