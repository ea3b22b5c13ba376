#include "cli/progress.h"

#include <stdint.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/figure.h"
#include "cli/interrupt.h"
#include "cli/live_line.h"

enum { REFRESH_MS = 100 };

static bool alive, shown;
static int64_t drawn_ms; /* on clock_ms() */

void progress_setup(bool live)
{
	alive = live;
}

void progress_show(const char *what)
{
	if (!alive)
		return;
	live_line_show(what);
	shown = true;
	drawn_ms = clock_ms();
}

static void show_loading(size_t bytes, size_t files)
{
	char line[80], size[24], count[24];

	if (!alive || (shown && clock_ms() - drawn_ms < REFRESH_MS))
		return;
	figure_count((int64_t)bytes, size);
	figure_count((int64_t)files, count);
	if (files)
		snprintf(line, sizeof line, "reading: %sB in %s file%s", size, count,
			 files == 1 ? "" : "s");
	else
		snprintf(line, sizeof line, "reading: %sB", size);
	progress_show(line);
}

bool progress_loading(void *owner, size_t bytes, size_t files)
{
	(void)owner;
	show_loading(bytes, files);
	return !interrupt_count();
}

void progress_end(void)
{
	if (alive)
		live_line_clear();
	shown = false;
}
