#include "cli/live_line.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/tell.h"

enum { WIDTH_UNKNOWN = 80 };

static bool colored;
static char shown[LIVE_LINE_MAX]; /* what stands on the terminal, or "" */

void live_line_setup(bool color)
{
	colored = color;
	tell_interlude(live_line_clear);
}

size_t live_line_width(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return WIDTH_UNKNOWN - 1;
	return (size.ws_col < LIVE_LINE_MAX ? size.ws_col : LIVE_LINE_MAX) - 1u;
}

static void write_out(const char *string)
{
	file_write_fd(STDERR_FILENO, text_of(string), NULL);
}

void live_line_show(const char *line)
{
	auto_free char *drawn = NULL;

	if (!strcmp(line, shown))
		return;
	snprintf(shown, sizeof shown, "%s", line);
	drawn = xasprintf(colored ? "\r\033[2m%s\033[0m\033[K" : "\r%s\033[K", line);
	write_out(drawn);
}

void live_line_clear(void)
{
	if (!*shown)
		return;
	*shown = '\0';
	write_out("\r\033[K");
}
