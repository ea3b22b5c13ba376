#include "cli/trace_follow.h"

#include <stdbool.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/trace_page.h"
#include "cli/trace_reader.h"

enum { PAGE_MS = 1000 }; /* the least between two pages */

struct follower {
	const char *name, *html; /* lent */
	struct evbuffer *lines;  /* owned: of the page */
	int64_t written;         /* clock_ms() of the last page */
	bool stale;              /* more has come since */
};

static bool print_line(void *owner, struct rlmd_text line, const json_t *event)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	(void)owner;
	(void)event;
	buffer_add(out, line.bytes, line.size);
	buffer_add(out, "\n", 1);
	return !command_print(text_in(out));
}

static bool print_nothing(void *owner, struct rlmd_error *err)
{
	(void)owner;
	(void)err;
	return true;
}

/* A run that appends to the same file takes the place of the one before. */
static bool keep_line(void *owner, struct rlmd_text line, const json_t *event)
{
	struct follower *follower = owner;

	if (trace_reader_begins(event))
		evbuffer_drain(follower->lines, evbuffer_get_length(follower->lines));
	buffer_add(follower->lines, line.bytes, line.size);
	buffer_add(follower->lines, "\n", 1);
	follower->stale = true;
	return true;
}

static bool write_page(struct follower *follower, bool grows, struct rlmd_error *err)
{
	follower->stale = false;
	follower->written = clock_ms();
	return trace_page_write(text_in(follower->lines), follower->name, grows, follower->html,
				err);
}

static bool write_page_when_due(void *owner, struct rlmd_error *err)
{
	struct follower *follower = owner;

	return !follower->stale || clock_ms() - follower->written < PAGE_MS ||
	       write_page(follower, true, err);
}

/* The last page is not to load itself again. */
static void follow_page(struct follower *follower, const char *path, struct rlmd_error *err)
{
	const struct trace_reader reader = {
		.line = keep_line,
		.idle = write_page_when_due,
		.keys = -1,
		.owner = follower,
	};

	trace_reader_run(&reader, path, err);
	if ((err->kind == RLMD_ERROR_NONE || err->kind == RLMD_ERROR_CANCELLED) &&
	    evbuffer_get_length(follower->lines))
		write_page(follower, false, err);
}

int trace_follow(const char *path, const char *html, struct rlmd_error *err)
{
	const struct trace_reader printer = {.line = print_line, .idle = print_nothing, .keys = -1};
	auto_evbuffer struct evbuffer *lines = buffer_new();
	struct follower follower = {
		.name = strcmp(path, "-") ? path : "standard input",
		.html = html,
		.lines = lines,
	};

	if (html)
		follow_page(&follower, path, err);
	else
		trace_reader_run(&printer, path, err);
	if (interrupt_count())
		return 128 + interrupt_signal();
	return err->kind ? rlmd_error_exit_status(err->kind) : 0;
}
