/* base/error.h - filling a struct rlmd_error. */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>

/* All return false, so that a failing function can end in one line. */
bool error_set(struct rlmd_error *err, enum rlmd_error_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
bool error_errno(struct rlmd_error *err, enum rlmd_error_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4))); /* appends ": " and strerror(errno) */
bool error_context(struct rlmd_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3))); /* puts "fmt: " in front of the text */
