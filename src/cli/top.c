/*
 * rlmd top: a run, watched in a terminal while it writes its trace.
 */
#include <fcntl.h>
#include <locale.h>
#include <rlmd/trace.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/session.h"
#include "cli/tell.h"
#include "cli/top_view.h"
#include "cli/trace_reader.h"

enum { ROWS_UNKNOWN = 24, COLUMNS_UNKNOWN = 80, DRAW_MS = 100 };

/* Of xterm, which all terminals of today understand. */
#define SCREEN_BEGIN  "\033[?1049h\033[?25l"
#define SCREEN_END    "\033[?25h\033[?1049l"
#define SCREEN_HOME   "\033[H"
#define LINE_REST     "\033[K"
#define SCREEN_REST   "\033[J"
#define SUMMARY_BEGIN "\033[7m"
#define SUMMARY_END   "\033[0m"

struct top {
	struct top_view *view; /* owned */
	int keys;              /* lent; -1: there are none */
	struct termios usual;  /* of the keys' terminal */
	int64_t drawn;         /* clock_ms() of the last frame */
};

static void write_out(const char *text)
{
	file_write_fd(STDOUT_FILENO, text_of(text), NULL);
}

/* --- the terminal ------------------------------------------------------------------------ */

/* Keys come one by one and are not shown; Ctrl-C is a signal as ever, and nothing is stopped in the
 * midst of a screen. */
static void take_terminal(struct top *top)
{
	struct termios raw;

	if (top->keys >= 0 && tcgetattr(top->keys, &top->usual))
		top->keys = -1;
	if (top->keys >= 0) {
		raw = top->usual;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw.c_cc[VSUSP] = _POSIX_VDISABLE;
		tcsetattr(top->keys, TCSADRAIN, &raw);
	}
	write_out(SCREEN_BEGIN);
}

static void give_terminal_back(const struct top *top)
{
	write_out(SCREEN_END);
	if (top->keys >= 0)
		tcsetattr(top->keys, TCSADRAIN, &top->usual);
}

static void draw(struct top *top)
{
	auto_evbuffer struct evbuffer *lines = buffer_new();
	auto_evbuffer struct evbuffer *frame = buffer_new();
	struct winsize size = {0};
	struct rlmd_text text;
	size_t next;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
		size = (struct winsize){.ws_row = ROWS_UNKNOWN, .ws_col = COLUMNS_UNKNOWN};
	top->drawn = clock_ms();
	/* In the last column some terminals erase what was written last. */
	top_view_draw(top->view, top->drawn, size.ws_row, size.ws_col - 1, lines);
	text = text_in(lines);
	buffer_add_printf(frame, SCREEN_HOME);
	for (size_t at = 0; at < text.size; at = next) {
		next = text_line_end(text, at);
		buffer_add_printf(frame, "%s" LINE_REST "%s", at ? "\r\n" : "",
				  at ? "" : SUMMARY_BEGIN);
		buffer_add(frame, text.bytes + at, next - at - (text.bytes[next - 1] == '\n'));
		buffer_add_printf(frame, "%s", at ? "" : SUMMARY_END);
	}
	buffer_add_printf(frame, SCREEN_REST);
	file_write_fd(STDOUT_FILENO, text_in(frame), NULL);
}

/* --- the trace --------------------------------------------------------------------------- */

static bool on_line(void *owner, struct rlmd_text line, const json_t *event)
{
	struct top *top = owner;

	(void)line;
	if (event)
		top_view_take(top->view, event, clock_ms());
	return true;
}

static bool on_idle(void *owner, struct rlmd_error *err)
{
	struct top *top = owner;

	(void)err;
	if (clock_ms() - top->drawn >= DRAW_MS)
		draw(top);
	return true;
}

static bool on_key(void *owner)
{
	const struct top *top = owner;
	char key = 'q'; /* the terminal is gone */

	return read(top->keys, &key, 1) == 1 && key != 'q' && key != 'Q';
}

static bool check(int count, char **words, struct rlmd_error *err)
{
	struct stat st;

	if (count != 1)
		return error_set(err, RLMD_ERROR_USAGE, "top needs one FILE");
	if (!isatty(STDOUT_FILENO))
		return error_set(err, RLMD_ERROR_USAGE,
				 "top needs a terminal; 'rlmd trace --follow' prints events");
	if (stat(words[0], &st))
		return error_errno(err, RLMD_ERROR_INPUT, "%s", words[0]);
	return S_ISREG(st.st_mode) || error_set(err, RLMD_ERROR_INPUT, "%s is no file", words[0]);
}

/* The screen is gone in the end: how the run stood is told below the command. */
static void watch(struct top *top, const char *path, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *summary = buffer_new();
	const struct trace_reader reader = {
		.line = on_line,
		.idle = on_idle,
		.key = on_key,
		.keys = top->keys,
		.owner = top,
	};

	take_terminal(top);
	trace_reader_run(&reader, path, err);
	give_terminal_back(top);
	top_view_summary(top->view, clock_ms(), summary);
	buffer_add(summary, "\n", 1);
	command_print(text_in(summary));
}

int command_top(struct session *session, int count, char **words)
{
	struct rlmd_error err = {0};
	auto_close int terminal = -1;
	struct top top = {0};

	(void)session;
	if (!check(count, words, &err)) {
		if (err.kind == RLMD_ERROR_USAGE)
			return command_refuse(COMMAND_TOP, &err);
		tell_error("%s", err.text);
		return rlmd_error_exit_status(err.kind);
	}
	if (!isatty(STDIN_FILENO))
		terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
	top.keys = isatty(STDIN_FILENO) ? STDIN_FILENO : terminal;
	setlocale(LC_CTYPE, "C.UTF-8");
	top.view = top_view_new(words[0]);
	watch(&top, words[0], &err);
	top_view_free(top.view);
	if (interrupt_count())
		return 128 + interrupt_signal();
	if (err.kind)
		tell_error("%s", err.text);
	return rlmd_error_exit_status(err.kind);
}
