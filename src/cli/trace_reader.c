#include "cli/trace_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/wait.h"

enum {
	LOOK_MS = 200, /* between two looks at a file that has not grown */
	EVENT_DEPTH = 200,
};

struct trace_reading {
	const struct trace_reader *reader; /* lent */
	int fd;                            /* owned */
	bool is_file;                      /* whose end is only where it ends now */
	struct evbuffer *lines;            /* owned: the last one may be half */
	bool ended;                        /* the run has */
};

bool trace_reader_begins(const json_t *event)
{
	return event && !json_get_integer(event, "seq", -1);
}

/* The lines that have ended. */
static bool take_lines(struct trace_reading *reading)
{
	for (;;) {
		struct rlmd_text all = text_in(reading->lines);
		const char *stop = memchr(all.bytes, '\n', all.size);
		size_t size = stop ? (size_t)(stop - all.bytes) : 0;
		json_auto_t *event = NULL;

		if (!stop)
			return true;
		event = json_read(text_from(all.bytes, size), EVENT_DEPTH, NULL);
		if (!reading->reader->line(reading->reader->owner, text_from(all.bytes, size),
					   event))
			return false;
		reading->ended = text_equal(json_get_text(event, "event"), "result");
		evbuffer_drain(reading->lines, size + 1);
	}
}

static bool rest(const struct trace_reading *reading, struct rlmd_error *err)
{
	const struct trace_reader *reader = reading->reader;
	enum wait_end end = wait_for(reader->keys, reader->keys < 0 ? 0 : POLLIN,
				     clock_ms() + LOOK_MS, 0);

	if (end == WAIT_READY)
		return reader->key(reader->owner);
	return end == WAIT_LATE || file_may_go_on(WAIT_FOREVER, err);
}

static bool step(struct trace_reading *reading, struct rlmd_error *err)
{
	const struct trace_reader *reader = reading->reader;
	char piece[1 << 16];
	size_t got;

	if (!file_take_fd(reading->fd, piece, sizeof piece, WAIT_FOREVER, &got, err))
		return false;
	buffer_add(reading->lines, piece, got);
	if (!take_lines(reading) || reading->ended || !reader->idle(reader->owner, err))
		return false;
	return got || (reading->is_file && rest(reading, err));
}

bool trace_reader_run(const struct trace_reader *reader, const char *path, struct rlmd_error *err)
{
	bool is_stdin = !strcmp(path, "-");
	auto_evbuffer struct evbuffer *lines = buffer_new();
	auto_close int fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	struct trace_reading reading = {.reader = reader, .fd = fd, .lines = lines};
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return error_errno(err, RLMD_ERROR_INPUT, "cannot read %s", path);
	reading.is_file = S_ISREG(st.st_mode);
	while (step(&reading, err))
		continue;
	if (err->kind == RLMD_ERROR_INPUT)
		error_context(err, "%s", is_stdin ? "standard input" : path);
	return reading.ended;
}
