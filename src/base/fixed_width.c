#include "base/fixed_width.h"

#include "base/block.h"

enum {
	ESCAPE = 0xdc00, /* a byte that is not UTF-8, as a character: Python's surrogateescape */
	RUN = BYTE_MASK_SIZE, /* bytes of ASCII that are taken at once */
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

/*
 * The bytes of the character at `at`; of one that is none its first byte, which is escaped, and
 * so is the rest, for no character begins like that.
 */
static inline size_t decode(const uint8_t *at, const uint8_t *end, uint32_t *ret_point)
{
	size_t size = *at < 0x80 ? 1 : utf8_sequence((const char *)at, (size_t)(end - at));

	*ret_point = size ? utf8_point((const char *)at, size) : (uint32_t)ESCAPE + *at;
	return size ? size : 1;
}

static inline int is_run(const uint8_t *at, const uint8_t *end, size_t room)
{
	return room >= RUN && end - at >= RUN && byte_mask_is_ascii((const char *)at);
}

/* One function a width, so that the compiler takes a run by vectors. */
#define DEFINE_TAKE(width, type)                                                                   \
	static size_t take_##width(const uint8_t **from, const uint8_t *end, type *out,            \
				   size_t count)                                                   \
	{                                                                                          \
		const uint8_t *at = *from;                                                         \
		size_t taken = 0;                                                                  \
		uint32_t point;                                                                    \
                                                                                                   \
		while (at < end && taken < count) {                                                \
			if (is_run(at, end, count - taken)) {                                      \
				for (size_t i = 0; i < RUN; i++)                                   \
					out[taken + i] = at[i];                                    \
				taken += RUN;                                                      \
				at += RUN;                                                         \
				continue;                                                          \
			}                                                                          \
			for (size_t i = 0; i < RUN && at < end && taken < count; i++) {            \
				at += decode(at, end, &point);                                     \
				out[taken++] = (type)point;                                        \
			}                                                                          \
		}                                                                                  \
		*from = at;                                                                        \
		return taken;                                                                      \
	}

DEFINE_TAKE(1, uint8_t)
DEFINE_TAKE(2, uint16_t)
DEFINE_TAKE(4, uint32_t)

size_t fixed_width_take(enum text_form form, const uint8_t **at, const uint8_t *end, void *out,
			size_t count)
{
	switch (form) {
	case TEXT_UTF8:
	case TEXT_ASCII:
	case TEXT_LATIN1:
		return take_1(at, end, out, count);
	case TEXT_UCS2:
		return take_2(at, end, out, count);
	case TEXT_UCS4:
		return take_4(at, end, out, count);
	}
	return 0;
}

size_t fixed_width_skip(const uint8_t **from, const uint8_t *end, size_t count)
{
	const uint8_t *at = *from;
	size_t skipped = 0;
	uint32_t point;

	while (at < end && skipped < count) {
		if (is_run(at, end, count - skipped)) {
			skipped += RUN;
			at += RUN;
			continue;
		}
		for (size_t i = 0; i < RUN && at < end && skipped < count; i++, skipped++)
			at += decode(at, end, &point);
	}
	*from = at;
	return skipped;
}
