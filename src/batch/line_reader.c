#include "batch/line_reader.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

enum {
	STEP = 1 << 18,      /* bytes that one call reads */
	PIECE = 1 << 12,     /* bytes that are read of a single line first */
	ROOM_KEPT = 1 << 20, /* a buffer that one long line made is not kept for all others */
};

static off_t position(const struct line_reader *reader)
{
	return reader->read - (off_t)(reader->end - reader->start);
}

/* Drops lines that were told or are skipped from the front of the buffer. */
static void make_room(struct line_reader *reader)
{
	size_t used = reader->end - reader->start;

	if (!used && reader->room > ROOM_KEPT) {
		free(reader->buffer);
		reader->buffer = NULL;
		reader->room = 0;
	} else if (used && reader->start) {
		memmove(reader->buffer, reader->buffer + reader->start, used);
	}
	reader->start = 0;
	reader->end = used;
	reader->searched = used;
	if (reader->room - used < STEP) {
		reader->room = reader->room ? 2 * reader->room : (size_t)2 * STEP;
		reader->buffer = xreallocarray(reader->buffer, reader->room, 1);
	}
}

static enum line_status tell(struct line_reader *reader, size_t size, bool torn,
			     struct rlmd_text *ret)
{
	bool skipped = reader->skipping || size > reader->limit;

	reader->number++;
	if (!reader->skipping)
		reader->offset = position(reader);
	*ret = text_from(skipped ? "" : reader->buffer + reader->start, skipped ? 0 : size);
	reader->start += size + !torn;
	reader->searched = reader->start;
	reader->skipping = false;
	return skipped ? LINE_TOO_LONG : torn ? LINE_TORN : LINE_WHOLE;
}

/* A line that is too long already is let go, whatever more of it there is. */
static void skip(struct line_reader *reader)
{
	if (!reader->skipping)
		reader->offset = position(reader);
	reader->skipping = true;
	reader->start = reader->end;
	reader->searched = reader->end;
}

static bool must_wait(const struct line_reader *reader)
{
	struct pollfd ready = {.fd = reader->fd, .events = POLLIN};

	return reader->may_block && !poll(&ready, 1, 0);
}

static enum line_status read_on(struct line_reader *reader)
{
	size_t room = STEP;
	ssize_t got;

	if (must_wait(reader))
		return LINE_AWAITED;
	make_room(reader);
	if (reader->size && reader->size - reader->read < (off_t)room)
		room = (size_t)(reader->size - reader->read);
	got = room ? read(reader->fd, reader->buffer + reader->end, room) : 0;
	if (got < 0)
		return errno == EAGAIN ? LINE_AWAITED : errno == EINTR ? LINE_NOT_YET : LINE_FAILED;
	reader->ended = !got;
	reader->end += (size_t)got;
	reader->read += got;
	return LINE_NOT_YET;
}

enum line_status line_reader_next(struct line_reader *reader, struct rlmd_text *ret)
{
	size_t left = reader->end - reader->searched;
	const char *feed = left ? memchr(reader->buffer + reader->searched, '\n', left) : NULL;

	assert(reader->limit);
	if (feed)
		return tell(reader, (size_t)(feed - reader->buffer) - reader->start, false, ret);
	reader->searched = reader->end;
	if (reader->skipping || reader->end - reader->start > reader->limit)
		skip(reader);
	if (!reader->ended)
		return read_on(reader);
	if (reader->end > reader->start || reader->skipping)
		return tell(reader, reader->end - reader->start, true, ret);
	return LINE_END;
}

void line_reader_done(struct line_reader *reader)
{
	free(reader->buffer);
	reader->buffer = NULL;
	reader->room = reader->start = reader->end = reader->searched = 0;
}

char *line_reader_at(int fd, off_t offset, size_t *ret_size)
{
	size_t room = PIECE, have = 0;
	auto_free char *bytes = xcalloc(room, 1);
	const char *feed = NULL;

	while (!feed) {
		ssize_t got = pread(fd, bytes + have, room - have, offset + (off_t)have);

		if (got <= 0)
			return NULL;
		feed = memchr(bytes + have, '\n', (size_t)got);
		have += (size_t)got;
		if (!feed && have == room)
			bytes = xreallocarray(bytes, room *= 2, 1);
	}
	*ret_size = (size_t)(feed - bytes);
	return take_pointer(&bytes);
}
