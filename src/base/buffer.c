#include "base/buffer.h"

#include <event2/buffer.h>

#include "base/alloc.h"

/* Of a function of libevent that gives a number below zero where it failed: for want of memory
 * alone, as nothing here freezes a buffer. */
static void done(int result)
{
	if (result < 0)
		alloc_failed();
}

struct evbuffer *buffer_new(void)
{
	return xpresent(evbuffer_new());
}

void buffer_add(struct evbuffer *buffer, const void *bytes, size_t size)
{
	done(evbuffer_add(buffer, bytes, size));
}

void buffer_add_printf(struct evbuffer *buffer, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	buffer_add_vprintf(buffer, fmt, args);
	va_end(args);
}

void buffer_add_vprintf(struct evbuffer *buffer, const char *fmt, va_list args)
{
	done(evbuffer_add_vprintf(buffer, fmt, args));
}

void buffer_add_reference(struct evbuffer *buffer, const void *bytes, size_t size,
			  evbuffer_ref_cleanup_cb release, void *owner)
{
	done(evbuffer_add_reference(buffer, bytes, size, release, owner));
}

void buffer_add_buffer(struct evbuffer *buffer, struct evbuffer *from)
{
	done(evbuffer_add_buffer(buffer, from));
}

unsigned char *buffer_pullup(struct evbuffer *buffer, ev_ssize_t size)
{
	size_t held = evbuffer_get_length(buffer);
	unsigned char *bytes = evbuffer_pullup(buffer, size);

	if (!bytes && held && (size < 0 || (size_t)size <= held))
		alloc_failed();
	return bytes;
}

struct evbuffer_iovec buffer_reserve(struct evbuffer *buffer, size_t size)
{
	struct evbuffer_iovec room;

	done(evbuffer_reserve_space(buffer, (ev_ssize_t)size, &room, 1));
	return room;
}
