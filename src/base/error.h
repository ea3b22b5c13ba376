/*
 * base/error.h - filling a struct rlmd_error, and why a run stopped.
 *
 * The kinds of errors are base/errors.def, whose columns tell the reason that each is to a run; the
 * reasons are base/stops.def.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>

/* All return false, so that a failing function can end in one line. */
bool error_set(struct rlmd_error *err, enum rlmd_error_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
bool error_errno(struct rlmd_error *err, enum rlmd_error_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4))); /* appends ": " and strerror(errno); the kind is
						  that of error_kind_of() */
bool error_context(struct rlmd_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3))); /* puts "fmt: " in front of the text */

/* RLMD_ERROR_MACHINE where the errno says that the machine had none left of what it takes (EMFILE,
 * ENOMEM, EAGAIN of a fork); else `kind`. */
enum rlmd_error_kind error_kind_of(int number, enum rlmd_error_kind kind);

/* A limit was reached: RLMD_ERROR_BUDGET, and which. */
bool error_limit(struct rlmd_error *err, enum rlmd_stop limit, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Why a run that ends with this error stopped; RLMD_STOP_NONE: there is no name for it. */
enum rlmd_stop error_stop(const struct rlmd_error *);

/* The kind of error of a run that was stopped and gave no answer. */
enum rlmd_error_kind error_of_stop(enum rlmd_stop);

/* The kind with this name; RLMD_ERROR_NONE where there is none. */
enum rlmd_error_kind error_named(struct rlmd_text name);

/* The sentence for models and users; NULL where there is none. Static. */
const char *error_stop_words(enum rlmd_stop);

/* The warning if an answer was forced for this reason (ENG-20); NULL: none is forced. Static. */
const char *error_stop_warning(enum rlmd_stop);
