/*
 * cli/progress.h - a live line on standard error before there is a run to tell of: what is being
 * loaded, what is being started.
 *
 * It is replaced by that of the run (cli/status.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Shown only if it is `live`: on a terminal, and where nobody wants quiet. */
void progress_setup(bool live);

void progress_show(const char *what);

/* How far loading is, as rlmd_context_options wants it: redrawn a few times a second at most. A
 * signal ends it. */
bool progress_loading(void *owner, size_t bytes, size_t files);

void progress_end(void);
