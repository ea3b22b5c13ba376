/*
 * cli/tell.h - what the program says to its user: one line each, on standard error.
 *
 * Everything is escaped on its way, for much of it was written by models and
 * servers. Errors are always said; the rest is not where the user wants quiet.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

void tell_setup(bool quiet, bool color);

void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tell_warning(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tell_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Called before a line is written, this module's and the log's. NULL: nobody. */
void tell_interlude(void (*before)(void));
