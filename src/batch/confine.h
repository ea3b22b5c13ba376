/* batch/confine.h - paths that lie in one directory, whatever links lead there. */
#pragma once

#include <rlmd/rlmd.h>

/*
 * Where `path` is, without links, new. NULL and RLMD_ERROR_INPUT: it is not in `directory`, is none
 * of files (git:), or is not there. Of what is outside by its very words nothing is looked at.
 * `lifts` is the option that allows others, static.
 */
char *confine(const char *directory, const char *path, const char *lifts, struct rlmd_error *);
