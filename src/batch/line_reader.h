/*
 * batch/line_reader.h - the lines of a file or a stream of any size, in steps and bounded memory.
 *
 * Each call reads once from the descriptor, or tells a line. A pipe is never waited for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"

enum line_status {
	LINE_WHOLE,    /* without its line feed */
	LINE_TORN,     /* the last one, which has none */
	LINE_TOO_LONG, /* it is passed over; its text is empty */
	LINE_NOT_YET,  /* some of it is read: call again */
	LINE_AWAITED,  /* there is nothing to read at the moment */
	LINE_END,
	LINE_FAILED, /* errno says why */
};

/* On the stack or embedded: zero but for the public members. */
struct line_reader {
	int fd;          /* lent; read from where it stands */
	size_t limit;    /* bytes of a line, at most */
	off_t size;      /* bytes to read at most; 0: to the end */
	bool may_block;  /* a read of the descriptor may wait: it is asked before */
	uint64_t number; /* of the line that was told, from 1 */
	off_t offset;    /* where it begins, from where the reading began */
	off_t read;      /* bytes that were */
	/* private */
	char *buffer; /* owned */
	size_t room, start, end, searched;
	bool skipping, ended;
};

/* `ret` is lent until the next call. */
enum line_status line_reader_next(struct line_reader *, struct rlmd_text *ret);
void line_reader_done(struct line_reader *); /* the descriptor stays open */

/* The line of a regular file that begins at `offset`, new, without its line feed. NULL: there is no
 * whole one. */
char *line_reader_at(int fd, off_t offset, size_t *ret_size);
