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

/* A limit was reached: RLMD_ERROR_BUDGET, and which. */
bool error_limit(struct rlmd_error *err, enum rlmd_stop limit, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Why a run that ends with this error stopped; RLMD_STOP_NONE: there is no name for it. */
enum rlmd_stop error_stop(const struct rlmd_error *);

/* The kind of error of a run that was stopped and gave no answer. */
enum rlmd_error_kind error_of_stop(enum rlmd_stop);

/* The kind with this name; RLMD_ERROR_NONE where there is none. */
enum rlmd_error_kind error_named(struct rlmd_text name);
