/*
 * base/buffer.h - libevent's buffers, whose memory is there, or the program ends.
 *
 * An evbuffer that cannot grow says so by a result that is easily passed over, and a request that
 * lacks a part is then sent as if it were whole. These take the place of the functions of libevent
 * that allocate; those that do not (evbuffer_drain(), evbuffer_get_length()) are used as they are.
 */
#pragma once

#include <event2/buffer.h>
#include <stdarg.h>
#include <stddef.h>

/* Owned by the caller: evbuffer_free(). */
struct evbuffer *buffer_new(void);

void buffer_add(struct evbuffer *, const void *bytes, size_t);
void buffer_add_printf(struct evbuffer *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void buffer_add_vprintf(struct evbuffer *, const char *fmt, va_list)
	__attribute__((format(printf, 2, 0)));

/* Lends the bytes, until `release` is called. */
void buffer_add_reference(struct evbuffer *, const void *bytes, size_t,
			  evbuffer_ref_cleanup_cb release, void *owner);

/* Moves all of the second one to the end of the first one. */
void buffer_add_buffer(struct evbuffer *, struct evbuffer *from);

/* The first `size` bytes in one piece, or all (-1), lent until the buffer changes. NULL where it
 * holds fewer, and for all of an empty one. */
unsigned char *buffer_pullup(struct evbuffer *, ev_ssize_t size);

/* Room behind the end, in one piece; to be committed by evbuffer_commit_space(). */
struct evbuffer_iovec buffer_reserve(struct evbuffer *, size_t);
