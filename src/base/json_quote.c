#include "base/json_quote.h"

#include <string.h>

#include "base/block.h"
#include "base/buffer.h"

#define REPLACEMENT "\xef\xbf\xbd"

enum {
	PIECE = 64 << 10, /* bytes that an evbuffer is grown by, at most */
	SCRATCH = 8 << 10,
};

/* Writes the escape of a byte of ASCII that has to have one; returns its length. */
static size_t put_escape(unsigned char c, char *out)
{
	static const char names[] = "btn\0fr"; /* from \b on; of \v there is none */
	static const char digits[] = "0123456789ABCDEF";
	char name = c >= '\b' && c <= '\r' ? names[c - '\b'] : '\0';

	out[0] = '\\';
	out[1] = c >= 0x20 ? (char)c : name;
	if (out[1])
		return 2;
	memcpy(out + 1, "u00", 3);
	out[4] = digits[c >> 4];
	out[5] = digits[c & 15];
	return 6;
}

/* Valid characters of several bytes, one behind the other; `size` bytes are looked at. */
static size_t characters(const char *at, size_t size)
{
	size_t run = 0, one = 1;

	while (run < size && (unsigned char)at[run] >= 0x80 && one) {
		one = utf8_sequence(at + run, size - run);
		run += one;
	}
	return run;
}

/* Takes what stands at `at` and is not plain; returns how much it wrote, of JSON_QUOTE_ROOM or
 * more. */
static size_t put_special(const char **at, const char *end, char *out, size_t room)
{
	const char *start = *at;
	size_t left = (size_t)(end - start);
	size_t size;

	if ((unsigned char)*start < 0x80) {
		*at = start + 1;
		return put_escape((unsigned char)*start, out);
	}
	size = characters(start, left < room ? left : room);
	if (size) {
		*at = start + size;
		memcpy(out, start, size);
		return size;
	}
	*at = start + text_invalid(text_from(start, left));
	memcpy(out, REPLACEMENT, sizeof REPLACEMENT - 1);
	return sizeof REPLACEMENT - 1;
}

/* Copies what is plain before the first byte that is not; `size` bytes fit into `out`. */
static size_t copy_plain(const char *at, size_t size, char *out)
{
	size_t plain = 0;

	for (; size - plain >= BLOCK; plain += BLOCK) {
		uint64_t mask = block_not_plain(block_load(at + plain));

		memcpy(out + plain, at + plain, BLOCK);
		if (mask)
			return plain + block_first(mask);
	}
	for (; plain < size && block_is_plain(at[plain]); plain++)
		out[plain] = at[plain];
	return plain;
}

size_t json_quote_some(struct rlmd_text *rest, char *out, size_t room)
{
	const char *at = rest->bytes, *end = at ? at + rest->size : at;
	size_t used = 0;

	while (at < end) {
		size_t left = (size_t)(end - at), fits = room - used;
		size_t plain = copy_plain(at, left < fits ? left : fits, out + used);

		at += plain;
		used += plain;
		while (at < end && room - used >= JSON_QUOTE_ROOM && !block_is_plain(*at))
			used += put_special(&at, end, out + used, room - used);
		if (room - used < JSON_QUOTE_ROOM)
			break;
	}
	*rest = text_from(at, (size_t)(end - at));
	return used;
}

/* Written to where the cache has it, for that is as fast as any way to count alone. */
size_t json_quoted_size(struct rlmd_text text)
{
	char scratch[SCRATCH];
	size_t size = 0;

	while (text.size)
		size += json_quote_some(&text, scratch, sizeof scratch);
	return size;
}

void json_quote(struct rlmd_text text, struct evbuffer *out)
{
	buffer_add(out, "\"", 1);
	while (text.size) {
		size_t likely = text.size + text.size / 8 + JSON_QUOTE_ROOM;
		struct evbuffer_iovec room = buffer_reserve(out, likely < PIECE ? likely : PIECE);

		room.iov_len = json_quote_some(&text, room.iov_base, room.iov_len);
		evbuffer_commit_space(out, &room, 1);
	}
	buffer_add(out, "\"", 1);
}
