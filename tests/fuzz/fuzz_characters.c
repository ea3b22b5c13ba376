/*
 * Whatever bytes an input has: they are counted as they are laid out for Python, and its characters
 * give the same bytes again, as Python's own surrogateescape does.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/fixed_width.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The character as UTF-8, or the byte that it stands for; gives how many bytes that is. */
static size_t encode(uint32_t point, uint8_t out[static 4])
{
	size_t more = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3, i;

	assert(point <= 0x10ffff &&
	       (point < 0xd800 || point > 0xdfff || point >> 7 == 0xdc80 >> 7));
	if (point >> 7 == 0xdc80 >> 7) {
		out[0] = (uint8_t)point;
		return 1;
	}
	for (i = more; i; i--, point >>= 6)
		out[i] = (uint8_t)(0x80 | (point & 0x3f));
	out[0] = (uint8_t)(more ? ((0xff00 >> (more + 1)) & 0xff) | point : point);
	return more + 1;
}

static uint32_t point_at(const uint8_t *raw, enum text_form form)
{
	uint16_t half;
	uint32_t whole;

	switch (text_form_width(form)) {
	case 1:
		return *raw;
	case 2:
		memcpy(&half, raw, sizeof half);
		return half;
	default:
		memcpy(&whole, raw, sizeof whole);
		return whole;
	}
}

/* Its characters, taken so many at a time; new. */
static uint8_t *lay_out(struct rlmd_text text, enum text_form form, size_t step, size_t count)
{
	const uint8_t *at = (const uint8_t *)text.bytes, *end = at + text.size, *skipped = at;
	size_t width = text_form_width(form), done = 0, taken;
	/* As long as its characters, so that a sanitizer sees who writes behind them. */
	uint8_t *raw = xcalloc(count + !count, width);

	do {
		taken = fixed_width_take(form, &at, end, raw + done * width,
					 step < count - done ? step : count - done);
		assert(fixed_width_skip(&skipped, end, taken) == taken && skipped == at);
		done += taken;
	} while (taken);
	assert(done == count && at == end);
	return raw;
}

/* The first byte is that of the text and says in which steps it is taken. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of its size, so that a sanitizer sees who reads behind it. */
	auto_free char *bytes = malloc(size + !size);
	struct rlmd_text text;
	size_t step = size ? (size_t)data[0] + 1 : 1, at = 0, i, width;
	struct text_scan scan = {0};
	auto_free uint8_t *raw = NULL;
	enum text_form form;

	memcpy(bytes, size ? data : (const uint8_t *)"", size);
	text = text_from(bytes, size);
	text_scan_feed(&scan, text);
	text_scan_end(&scan);
	form = text_form_of(scan.highest);
	width = text_form_width(form);
	raw = lay_out(text, form, step, scan.characters);
	for (i = 0; i < scan.characters; i++) {
		uint8_t one[4];
		size_t count = encode(point_at(raw + i * width, form), one);

		assert(count <= size - at && !memcmp(bytes + at, one, count));
		at += count;
	}
	assert(at == size);
	return 0;
}
