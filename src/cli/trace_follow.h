/* cli/trace_follow.h - a trace while it is written. */
#pragma once

#include "base/error.h"

/*
 * Reads `path` ("-": standard input) until the run has ended: prints its events as they come, or,
 * where `html` is no NULL, writes the page there anew each time that there are more. Returns the
 * command's exit status; RLMD_ERROR_INPUT, RLMD_ERROR_CANCELLED for an interruption, and those of
 * trace_page_write().
 */
int trace_follow(const char *path, const char *html, struct rlmd_error *);
