#include "cli/trace_follow.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/wait.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/trace_page.h"

enum {
	LOOK_MS = 200,  /* between two looks at a file that has not grown */
	PAGE_MS = 1000, /* the least between two pages */
	EVENT_DEPTH = 200,
};

struct follower {
	int fd;
	bool is_file;            /* whose end is only where it ends now */
	const char *name, *html; /* lent */
	struct evbuffer *lines;  /* owned: those of the run; the last one may be half */
	size_t looked;           /* bytes of them that were looked at */
	bool ended;              /* the run has */
	int64_t written;         /* clock_ms() of the last page */
	bool stale;              /* more has come since */
};

/* A run that appends to the same file takes the place of the one before. */
static void look_at_line(struct follower *follower, struct rlmd_text line)
{
	json_auto_t *event = json_read(line, EVENT_DEPTH, NULL);

	if (event && !json_get_integer(event, "seq", -1)) {
		evbuffer_drain(follower->lines, follower->looked);
		follower->looked = 0;
	}
	follower->ended = text_equal(json_get_text(event, "event"), "result");
}

static bool print_line(const struct follower *follower, struct rlmd_text line)
{
	return follower->html || !command_print(text_from(line.bytes, line.size + 1));
}

/* The lines that have ended. */
static bool look(struct follower *follower)
{
	for (;;) {
		struct rlmd_text all = text_in(follower->lines);
		const char *at = all.bytes + follower->looked;
		const char *stop = memchr(at, '\n', all.size - follower->looked);
		size_t size;

		if (!stop)
			return true;
		size = (size_t)(stop - at);
		if (!print_line(follower, text_from(at, size)))
			return false;
		look_at_line(follower, text_from(at, size));
		follower->looked += size + 1;
		follower->stale = true;
	}
}

static bool write_page(struct follower *follower, struct rlmd_error *err)
{
	bool due = follower->ended || clock_ms() - follower->written >= PAGE_MS;

	if (!follower->html || !follower->stale || !due)
		return true;
	follower->stale = false;
	if (!trace_page_write(text_slice(text_in(follower->lines), 0, follower->looked),
			      follower->name, !follower->ended, follower->html, err))
		return false;
	follower->written = clock_ms();
	return true;
}

static bool rest(struct rlmd_error *err)
{
	int64_t until = clock_ms() + LOOK_MS;

	return wait_for(-1, 0, until, 0) == WAIT_LATE || file_may_go_on(WAIT_FOREVER, err);
}

/* False at the end, and where `err` says so. */
static bool step(struct follower *follower, struct rlmd_error *err)
{
	char piece[1 << 16];
	size_t got;

	if (!file_take_fd(follower->fd, piece, sizeof piece, WAIT_FOREVER, &got, err)) {
		error_context(err, "%s", follower->name);
		return false;
	}
	buffer_add(follower->lines, piece, got);
	if (!look(follower) || !write_page(follower, err) || follower->ended)
		return false;
	return got || (follower->is_file && rest(err));
}

static bool begin(struct follower *follower, const char *path, struct rlmd_error *err)
{
	struct stat st;

	follower->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
	if (follower->fd < 0 || fstat(follower->fd, &st))
		return error_errno(err, RLMD_ERROR_INPUT, "cannot read %s", path);
	follower->is_file = S_ISREG(st.st_mode);
	return true;
}

static void finish(struct follower *follower, struct rlmd_error *err)
{
	if (err->kind == RLMD_ERROR_NONE || err->kind == RLMD_ERROR_CANCELLED) {
		follower->ended = true; /* the page is not to load itself again */
		follower->stale = follower->looked;
		write_page(follower, err);
	}
}

int trace_follow(const char *path, const char *html, struct rlmd_error *err)
{
	struct follower follower = {
		.name = strcmp(path, "-") ? path : "standard input",
		.html = html,
		.lines = buffer_new(),
	};

	if (begin(&follower, path, err)) {
		while (step(&follower, err))
			;
		if (!follower.ended)
			finish(&follower, err);
		close(follower.fd);
	}
	evbuffer_free(follower.lines);
	if (interrupt_count())
		return 128 + interrupt_signal();
	return err->kind ? rlmd_error_exit_status(err->kind) : 0;
}
