/* base/error.h - what went wrong, for a person to read and for a program to sort. */
#pragma once

#include <stdbool.h>

enum error_kind {
	ERROR_NONE,
#define ERROR(kind, name, exit, meaning) ERROR_##kind,
#include "base/errors.def"
#undef ERROR
};

/*
 * Lives on the caller's stack or inside a result, and needs no freeing. A
 * function that takes one as its last argument fills it when it fails and
 * leaves it alone when it succeeds. NULL is allowed: nobody wants to know.
 */
struct error {
	enum error_kind kind;
	int http_status; /* of the provider's answer; 0 where there was none */
	char text[512];  /* UTF-8, control characters escaped, no newline at the end */
};

/* All return false, so that a failing function can end in one line. */
bool error_set(struct error *err, enum error_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
bool error_errno(struct error *err, enum error_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4))); /* appends ": " and strerror(errno) */
bool error_context(struct error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3))); /* puts "fmt: " in front of the text */

/* The name in the result object ("budget"); "none" for ERROR_NONE. */
const char *error_name(enum error_kind kind);

/* The exit status of a command that ends with this kind; 0 for ERROR_NONE. */
int error_exit_status(enum error_kind kind);

/* What the kind means, as one clause without a full stop. */
const char *error_meaning(enum error_kind kind);
