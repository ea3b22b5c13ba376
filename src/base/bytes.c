#include "base/bytes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { LEAST = 256 };

void bytes_done(struct bytes *bytes)
{
	free(bytes->at);
	*bytes = (struct bytes){0};
}

/* Twice as many each time: what is large is given by the kernel in pages, which realloc() lets it
 * move. */
static char *make_room(struct bytes *bytes, size_t size)
{
	size_t room = bytes->room ? bytes->room : LEAST;

	if (size > bytes->room - bytes->size) {
		while (room - bytes->size < size)
			room *= 2;
		bytes->at = xreallocarray(bytes->at, room, 1);
		bytes->room = room;
	}
	return bytes->at + bytes->size;
}

void bytes_add(struct bytes *bytes, struct rlmd_text text)
{
	if (!text.size)
		return;
	memcpy(make_room(bytes, text.size), text.bytes, text.size);
	bytes->size += text.size;
}

void bytes_cut(struct bytes *bytes, size_t size)
{
	assert(size <= bytes->size);
	bytes->size = size;
}

char *bytes_take(struct bytes *bytes)
{
	char *taken = xreallocarray(bytes->at, bytes->size + 1, 1);

	taken[bytes->size] = '\0';
	*bytes = (struct bytes){0};
	return taken;
}

struct rlmd_text bytes_text(const struct bytes *bytes)
{
	return text_from(bytes->at ? bytes->at : "", bytes->size);
}
