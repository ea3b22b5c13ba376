/*
 * base/bytes.h - bytes that grow at their end and stay in one piece.
 *
 * For what is read as one text once all of it is there. An evbuffer, whose pieces then have to be
 * put together, holds the loop for milliseconds where they are megabytes; here the kernel moves
 * pages, and nothing is copied.
 */
#pragma once

#include <stddef.h>

#include "base/text.h"

/* Embed it; zero is empty. */
struct bytes {
	char *at;    /* owned; NULL while nothing was added */
	size_t size; /* of what is there */
	size_t room;
};

void bytes_done(struct bytes *);

/* Appends; the text is none of these bytes. */
void bytes_add(struct bytes *, struct rlmd_text);

/* Drops all but the first `size`. */
void bytes_cut(struct bytes *, size_t size);

/* Gives all of them away, with a NUL behind them, as what free() takes; none are left. */
char *bytes_take(struct bytes *);

/* All of them, lent until they change; empty, but not NULL, where there are none. */
struct rlmd_text bytes_text(const struct bytes *);
