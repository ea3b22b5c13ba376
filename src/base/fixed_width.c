#include "base/fixed_width.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/block.h"
#include "base/file.h"

enum {
	BUFFER = 32 << 10, /* bytes written at once */
	ESCAPE = 0xdc00,   /* a byte that is not UTF-8, as a character: Python's surrogateescape */
};

struct fixed_width {
	enum text_form form;
	int fd;       /* owned */
	size_t taken; /* bytes of the text */
	bool done;
};

const char *text_form_name(enum text_form form)
{
	static const char *const names[] = {"utf-8", "ascii", "latin-1", "ucs-2", "ucs-4"};

	return names[form];
}

enum text_form text_form_of(uint32_t point)
{
	return point < 0x80      ? TEXT_ASCII
	       : point < 0x100   ? TEXT_LATIN1
	       : point < 0x10000 ? TEXT_UCS2
				 : TEXT_UCS4;
}

size_t text_form_width(enum text_form form)
{
	return form == TEXT_UCS4 ? 4 : form == TEXT_UCS2 ? 2 : 1;
}

struct fixed_width *fixed_width_new(enum text_form form, struct rlmd_error *err)
{
	struct fixed_width *copy = xcalloc(1, sizeof *copy);

	copy->form = form;
	copy->fd = memfd_create("characters", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (copy->fd >= 0)
		return copy;
	error_errno(err, RLMD_ERROR_MACHINE, "no memory file for the characters of an input");
	fixed_width_free(copy);
	return NULL;
}

void fixed_width_free(struct fixed_width *copy)
{
	if (copy && copy->fd >= 0)
		close(copy->fd);
	free(copy);
}

/*
 * The character at `at`; gives its bytes. Where it is none, its first byte is escaped, and
 * what follows of it will be too, for no character begins like that.
 */
static size_t decode(const uint8_t *at, const uint8_t *end, uint32_t *ret_point)
{
	size_t size = *at < 0x80 ? 1 : utf8_sequence((const char *)at, (size_t)(end - at));

	*ret_point = size ? utf8_point((const char *)at, size) : (uint32_t)ESCAPE + *at;
	return size ? size : 1;
}

static void put(uint8_t *out, size_t place, enum text_form form, uint32_t point)
{
	switch (form) {
	case TEXT_UTF8:
	case TEXT_ASCII:
	case TEXT_LATIN1:
		out[place] = (uint8_t)point;
		return;
	case TEXT_UCS2:
		((uint16_t *)(void *)out)[place] = (uint16_t)point;
		return;
	case TEXT_UCS4:
		((uint32_t *)(void *)out)[place] = point;
		return;
	}
}

/* As many characters as fit into the buffer, from `at` to `end`; gives how many. */
static size_t fill(enum text_form form, const uint8_t **at, const uint8_t *end,
		   uint8_t out[static BUFFER])
{
	size_t room = BUFFER / text_form_width(form), count = 0, i;
	uint32_t point;

	while (*at < end && count < room) {
		if (room - count >= BLOCK && end - *at >= BLOCK &&
		    !block_beyond_ascii(block_load((const char *)*at))) {
			for (i = 0; i < BLOCK; i++)
				put(out, count + i, form, (*at)[i]);
			count += BLOCK;
			*at += BLOCK;
			continue;
		}
		*at += decode(*at, end, &point);
		put(out, count++, form, point);
	}
	return count;
}

bool fixed_width_go_on(struct fixed_width *copy, struct rlmd_text text, size_t bytes,
		       struct rlmd_error *err)
{
	_Alignas(uint32_t) uint8_t buffer[BUFFER];
	const uint8_t *begin = (const uint8_t *)text.bytes, *end = begin + text.size;
	const uint8_t *at = begin + copy->taken;
	size_t goal = text.size - copy->taken < bytes ? text.size : copy->taken + bytes;

	while (at < begin + goal) {
		size_t count = fill(copy->form, &at, end, buffer);

		if (!file_write_all(copy->fd,
				    text_from(buffer, count * text_form_width(copy->form))))
			return error_errno(err, RLMD_ERROR_MACHINE,
					   "no memory for the characters of an input of %zu bytes",
					   text.size);
	}
	copy->taken = (size_t)(at - begin);
	if (copy->taken < text.size || copy->done)
		return true;
	copy->done = true;
	return file_seal(copy->fd) ||
	       error_errno(err, RLMD_ERROR_INTERNAL, "cannot seal a memory file");
}

bool fixed_width_done(const struct fixed_width *copy)
{
	return copy->done;
}

int fixed_width_fd(const struct fixed_width *copy)
{
	return copy->fd;
}
