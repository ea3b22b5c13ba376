/*
 * cli/live_line.h - the line on a terminal that is rewritten in place, of which there is one.
 *
 * It is cleared before anything else is said (cli/tell.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { LIVE_LINE_MAX = 256 }; /* bytes, its end included */

/* Before the first one. */
void live_line_setup(bool color);

/* How many columns it may have. */
size_t live_line_width(void);

/* Nothing is written where it stands there already. ASCII, at most LIVE_LINE_MAX. */
void live_line_show(const char *line);
void live_line_clear(void);
