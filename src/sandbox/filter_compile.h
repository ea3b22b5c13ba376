/*
 * sandbox/filter_compile.h - from the table of seccomp/worker.def to a filter, by
 * libseccomp. For the build and for tests; the program itself has the result.
 */
#pragma once

#include "sandbox/filter.h"

bool filter_compile(struct filter *ret_filter, struct rlmd_error *);
