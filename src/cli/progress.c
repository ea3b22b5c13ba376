#include "cli/progress.h"

#include <event2/event.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/loop.h"
#include "base/text.h"
#include "cli/figure.h"
#include "cli/interrupt.h"
#include "cli/tell.h"

enum {
	REFRESH_MS = 100,
	TELL_MS = 1000,
	WIDTH_UNKNOWN = 80,
	STEPS = 16,
};

static bool alive, colored;
static char shown[PROGRESS_LINE_MAX]; /* the line that stands on the terminal, or "" */
static int64_t shown_ms;              /* on clock_ms(): when it was written */
static struct progress_source source;
static struct event *timer; /* owned; NULL: no source is asked */

/* --- a line and its parts ------------------------------------------------------------- */

void progress_add(struct progress_line *line, int gone_at, const char *fmt, ...)
{
	struct progress_part *part = &line->parts[line->count++];
	va_list args;

	va_start(args, fmt);
	vsnprintf(part->text, sizeof part->text, fmt, args);
	va_end(args);
	part->gone_at = part->brief_at = gone_at;
}

void progress_brief(struct progress_line *line, int at, const char *fmt, ...)
{
	struct progress_part *part = &line->parts[line->count - 1];
	va_list args;

	va_start(args, fmt);
	vsnprintf(part->brief, sizeof part->brief, fmt, args);
	va_end(args);
	part->brief_at = at;
}

/* Returns how long it would be. */
static size_t join(const struct progress_line *line, int step, char out[static PROGRESS_LINE_MAX])
{
	size_t size = 0;

	*out = '\0';
	for (size_t i = 0; i < line->count; i++) {
		const struct progress_part *part = &line->parts[i];
		const char *text = step < part->brief_at ? part->text : part->brief;

		if (step >= part->gone_at || !*text)
			continue;
		if (size < PROGRESS_LINE_MAX)
			snprintf(out + size, PROGRESS_LINE_MAX - size, "%s%s", size ? " | " : "",
				 text);
		size += strlen(text) + (size ? 3 : 0);
	}
	return size;
}

void progress_format(const struct progress_line *line, size_t width,
		     char out[static PROGRESS_LINE_MAX])
{
	int step = 0;

	if (width >= PROGRESS_LINE_MAX)
		width = PROGRESS_LINE_MAX - 1;
	while (step < STEPS && join(line, step, out) > width)
		step++;
	if (step == STEPS)
		*out = '\0';
}

/* --- on a terminal -------------------------------------------------------------------- */

static size_t width_of_terminal(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return WIDTH_UNKNOWN - 1;
	return size.ws_col - 1u;
}

static void write_out(const char *string)
{
	file_write_fd(STDERR_FILENO, text_of(string), NULL);
}

void progress_clear(void)
{
	if (!*shown)
		return;
	*shown = '\0';
	write_out("\r\033[K");
}

void progress_setup(bool live, bool color)
{
	alive = live;
	colored = color;
	tell_interlude(progress_clear);
}

void progress_show(const char *line)
{
	auto_free char *drawn = NULL;

	if (!alive || !strcmp(line, shown))
		return;
	snprintf(shown, sizeof shown, "%s", line);
	shown_ms = clock_ms();
	drawn = xasprintf(colored ? "\r\033[2m%s\033[0m\033[K" : "\r%s\033[K", line);
	write_out(drawn);
}

bool progress_loading(void *owner, size_t bytes, size_t files)
{
	char line[80], size[24], count[24];

	(void)owner;
	if (alive && (!*shown || clock_ms() - shown_ms >= REFRESH_MS)) {
		figure_count((int64_t)bytes, size);
		figure_count((int64_t)files, count);
		if (files)
			snprintf(line, sizeof line, "reading: %sB in %s file%s", size, count,
				 files == 1 ? "" : "s");
		else
			snprintf(line, sizeof line, "reading: %sB", size);
		progress_show(line);
	}
	return !interrupt_count();
}

/* --- a source ------------------------------------------------------------------------- */

static void on_refresh(evutil_socket_t fd, short what, void *owner)
{
	struct progress_line line = {.count = 0};
	char text[PROGRESS_LINE_MAX];

	(void)fd;
	(void)what;
	(void)owner;
	source.describe(source.owner, &line);
	progress_format(&line, width_of_terminal(), text);
	progress_show(text);
}

static void on_tell(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	(void)owner;
	source.say(source.owner);
}

void progress_start(struct event_base *base, const struct progress_source *from)
{
	const struct timeval often = clock_timeval(alive ? REFRESH_MS : TELL_MS);

	source = *from;
	if (alive ? !source.describe : !source.say)
		return;
	timer = loop_event(base, -1, EV_PERSIST, alive ? on_refresh : on_tell, NULL);
	loop_add(timer, &often);
}

void progress_end(void)
{
	progress_clear();
	if (timer)
		event_free(take_pointer(&timer));
}
