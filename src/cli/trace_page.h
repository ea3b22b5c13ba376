/*
 * cli/trace_page.h - a trace as one page of HTML, which needs no network and no other file.
 *
 * The page is share/viewer, made one file by the build; the events go into it as JSON, in which no
 * text can end the element that it stands in.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

/*
 * Writes the page about the last trace in `lines`; `name` is for errors. Of one that still grows
 * the page loads itself again every few seconds. RLMD_ERROR_INPUT, RLMD_ERROR_USAGE (sink_new()).
 */
bool trace_page_write(struct rlmd_text lines, const char *name, bool grows, const char *path,
		      struct rlmd_error *);
