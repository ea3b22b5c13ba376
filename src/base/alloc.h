/*
 * base/alloc.h - memory that is there, or the program ends.
 *
 * For our own small allocations only: whatever a stranger can size is limited
 * before it is allocated. Buffers of libevent: base/buffer.h.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

void *xcalloc(size_t count, size_t size);
void *xreallocarray(void *, size_t count, size_t size);
char *xstrdup(const char *);          /* NULL gives NULL */
char *xstrndup(const char *, size_t); /* copies NULs too; always terminated */
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The memory that a function of a library gave; where it gave NULL, the program ends. */
void *xpresent(void *memory);

/* Ends the program: "rlmd: out of memory", abort(). */
_Noreturn void alloc_failed(void);

/* Makes libevent and jansson abort on exhaustion too; call it once, first of all. */
void alloc_install(void);
