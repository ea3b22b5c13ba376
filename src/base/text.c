#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/block.h"
#include "base/buffer.h"

struct rlmd_text rlmd_text_of(const char *string)
{
	return text_of(string);
}

struct rlmd_text text_of(const char *string)
{
	return (struct rlmd_text){string, string ? strlen(string) : 0};
}

size_t text_line_end(struct rlmd_text text, size_t start)
{
	const char *feed = memchr(text.bytes + start, '\n', text.size - start);

	return feed ? (size_t)(feed - text.bytes) + 1 : text.size;
}

/* The first byte tells most texts from most strings, whose length need not be counted then. */
bool text_equal(struct rlmd_text text, const char *string)
{
	if (!text.size || *text.bytes != *string)
		return !text.size && !*string;
	return text.size == strlen(string) && !memcmp(text.bytes, string, text.size);
}

bool text_starts(struct rlmd_text text, const char *prefix)
{
	size_t size = strlen(prefix);

	return text.size >= size && (!size || !memcmp(text.bytes, prefix, size));
}

bool text_equal_caseless(struct rlmd_text text, const char *string)
{
	return text.size == strlen(string) && text_starts_caseless(text, string);
}

bool text_starts_caseless(struct rlmd_text text, const char *prefix)
{
	size_t size = strlen(prefix);

	return text.size >= size && (!size || !strncasecmp(text.bytes, prefix, size));
}

bool text_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

bool text_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool text_is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

struct rlmd_text text_trim(struct rlmd_text text)
{
	while (text.size && text_is_space(text.bytes[0])) {
		text.bytes++;
		text.size--;
	}
	while (text.size && text_is_space(text.bytes[text.size - 1]))
		text.size--;
	return text;
}

struct rlmd_text text_last_line(struct rlmd_text text)
{
	const char *feed;

	text = text_trim(text);
	feed = text.size ? memrchr(text.bytes, '\n', text.size) : NULL;
	return feed ? text_slice(text, (size_t)(feed - text.bytes) + 1, text.size) : text;
}

struct rlmd_text text_error_line(struct rlmd_text error)
{
	struct rlmd_text last = text_last_line(error);

	if (!text_starts(last, "Hint: "))
		return last;
	return text_last_line(text_slice(error, 0, (size_t)(last.bytes - error.bytes)));
}

char *text_copy(struct rlmd_text text)
{
	return xstrndup(text.bytes, text.size);
}

const char *text_find(struct rlmd_text text, const char *needle)
{
	return text.size ? memmem(text.bytes, text.size, needle, strlen(needle)) : NULL;
}

struct rlmd_text text_clip(struct rlmd_text text, size_t size)
{
	if (text.size <= size)
		return text;
	for (size_t back = 0; back < 4 && back <= size; back++) {
		unsigned char c = (unsigned char)text.bytes[size - back];
		size_t need = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

		if ((c & 0xc0) != 0x80)
			return text_from(text.bytes, back && need > back ? size - back : size);
	}
	return text_from(text.bytes, size);
}

/*
 * The length of the valid sequence at the start of `text`, or 0 with
 * `ret_skip` set to how many bytes to give up (the maximal subpart, as Unicode
 * chapter 3.9 recommends, so that repairs agree with Python's).
 */
static size_t sequence(struct rlmd_text text, uint32_t *ret_point, size_t *ret_skip)
{
	const unsigned char *s = (const unsigned char *)text.bytes;
	unsigned char low = 0x80, high = 0xbf;
	size_t need;

	*ret_skip = 1;
	if (s[0] < 0x80) {
		*ret_point = s[0];
		return 1;
	}
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	need = s[0] < 0xe0 ? 1 : s[0] < 0xf0 ? 2 : 3;
	*ret_point = s[0] & (0x3f >> need);
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	for (size_t i = 1; i <= need; i++) {
		if (i >= text.size || s[i] < low || s[i] > high) {
			*ret_skip = i;
			return 0;
		}
		*ret_point = *ret_point << 6 | (s[i] & 0x3f);
		low = 0x80;
		high = 0xbf;
	}
	return need + 1;
}

size_t text_invalid(struct rlmd_text text)
{
	uint32_t point;
	size_t skip;

	return sequence(text, &point, &skip) ? 0 : skip;
}

static bool is_unseen(uint32_t point)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
#define UNSEEN(low, high, what) {low, high},
#include "base/unseen.def"
#undef UNSEEN
	};
	size_t i = 0;

	while (i < sizeof ranges / sizeof *ranges && point > ranges[i].last)
		i++;
	return i < sizeof ranges / sizeof *ranges && point >= ranges[i].first;
}

/*
 * Writing needs these, each behind a character of its own: the zero-width joiners of Persian, of
 * Indian scripts and of emoji, and the selectors of a text's or an emoji's look. Alone behind what
 * is not ASCII they change nothing but that.
 */
static bool is_joined(uint32_t point, uint32_t before)
{
	return before > 0x7f && !is_unseen(before) &&
	       (point == 0x200c || point == 0x200d || point == 0xfe0e || point == 0xfe0f);
}

enum { ESCAPE_ROOM = 16 };

static void escape_point(uint32_t point, char out[static ESCAPE_ROOM])
{
	if (point == '\n' || point == '\t' || point == '\r')
		snprintf(out, ESCAPE_ROOM, "\\%c", point == '\n' ? 'n' : point == '\t' ? 't' : 'r');
	else if (point < 0x20)
		snprintf(out, ESCAPE_ROOM, "\\x%02x", point);
	else if (point < 0x10000)
		snprintf(out, ESCAPE_ROOM, "\\u%04x", point);
	else /* as JSON has it, so that JSON stays JSON */
		snprintf(out, ESCAPE_ROOM, "\\u%04x\\u%04x", 0xd7c0 + (point >> 10),
			 0xdc00 + (point & 0x3ff));
}

/* The escape of the character at the start; returns how many bytes it stands for. `before` is the
 * character before it, and becomes this one. */
static size_t escape_one(struct rlmd_text text, uint32_t *before, char out[static ESCAPE_ROOM])
{
	uint32_t point = 0;
	size_t skip;
	size_t size = sequence(text, &point, &skip);

	if (!size)
		snprintf(out, ESCAPE_ROOM, "\\x%02x", (unsigned char)text.bytes[0]);
	else if (is_unseen(point) && !is_joined(point, *before))
		escape_point(point, out);
	else
		snprintf(out, ESCAPE_ROOM, "%.*s", (int)size, text.bytes);
	*before = size ? point : 0;
	return size ? size : 1;
}

/* The bytes at the start of a text that stay as they are: most of most texts. */
static size_t plain_prefix(struct rlmd_text text, bool lines)
{
	size_t size = 0;

	while (size < text.size &&
	       ((text.bytes[size] >= 0x20 && text.bytes[size] < 0x7f) ||
		(lines && (text.bytes[size] == '\n' || text.bytes[size] == '\t'))))
		size++;
	return size;
}

void text_escape(struct rlmd_text text, char *out, size_t out_size)
{
	size_t used = 0;
	uint32_t before = 0;
	char one[ESCAPE_ROOM];

	while (text.size) {
		struct rlmd_text next = text_from(text.bytes, plain_prefix(text, false));
		size_t taken = next.size;

		if (taken) {
			next.size = next.size < out_size - used ? next.size : out_size - used - 1;
			before = 0;
		} else {
			taken = escape_one(text, &before, one);
			next = text_of(one);
		}
		if (used + next.size >= out_size)
			break;
		memcpy(out + used, next.bytes, next.size);
		used += next.size;
		text = text_from(text.bytes + taken, text.size - taken);
	}
	out[used] = '\0';
}

void text_escape_lines(struct rlmd_text text, struct evbuffer *out)
{
	uint32_t before = 0;
	char one[ESCAPE_ROOM];

	while (text.size) {
		size_t plain = plain_prefix(text, true);

		buffer_add(out, text.bytes, plain);
		before = plain ? 0 : before;
		text = text_from(text.bytes + plain, text.size - plain);
		if (text.size) {
			size_t taken = escape_one(text, &before, one);

			buffer_add(out, one, strlen(one));
			text = text_from(text.bytes + taken, text.size - taken);
		}
	}
}

/* Whether "##" and perhaps a word stand before that place. */
static bool ends_command(struct rlmd_text text, size_t bracket)
{
	size_t at = bracket;

	while (at && ((text.bytes[at - 1] >= 'a' && text.bytes[at - 1] <= 'z') ||
		      (text.bytes[at - 1] >= 'A' && text.bytes[at - 1] <= 'Z')))
		at--;
	return at >= 2 && text.bytes[at - 1] == '#' && text.bytes[at - 2] == '#';
}

void text_disarm(struct rlmd_text text, const char *bracket, struct evbuffer *out)
{
	size_t done = 0;

	for (size_t i = 0; i < text.size; i++)
		if (text.bytes[i] == '[' && ends_command(text, i)) {
			buffer_add(out, text.bytes + done, i - done);
			buffer_add(out, bracket, strlen(bracket));
			done = i + 1;
		}
	buffer_add(out, text.bytes + done, text.size - done);
}

/* Bytes from `low` to `high`, as signed numbers: those that go on with a character are the lowest
 * 64. So many vectors are compared before their counts, of a byte each, are summed up. */
static size_t count_bytes(struct rlmd_text text, signed char low, signed char high)
{
	enum { TOGETHER = 255 };
	const char *at = text.bytes, *end = at ? at + text.size : at;
	size_t count = 0;

	while (end - at >= BYTE_VECTOR_SIZE) {
		byte_vector found = {0};

		for (int i = 0; i < TOGETHER && end - at >= BYTE_VECTOR_SIZE; i++) {
			byte_vector bytes = byte_vector_load(at);

			found -= (bytes >= low) & (bytes <= high);
			at += BYTE_VECTOR_SIZE;
		}
		for (size_t i = 0; i < BYTE_VECTOR_SIZE; i++)
			count += (unsigned char)found[i];
	}
	for (; at < end; at++)
		count += (signed char)*at >= low && (signed char)*at <= high;
	return count;
}

size_t text_characters(struct rlmd_text text)
{
	return count_bytes(text, -64, 127);
}

/* How many bytes at the start are valid UTF-8. */
static size_t valid_prefix(struct rlmd_text text)
{
	const char *at = text.bytes, *end = at ? at + text.size : at;
	size_t size = 1;

	while (at < end && size) {
		while (end - at >= BLOCK && !block_beyond_ascii(block_load(at)))
			at += BLOCK;
		for (; at < end && (unsigned char)*at < 0x80; at++)
			;
		while (at < end && (unsigned char)*at >= 0x80 && size) {
			size = utf8_sequence(at, (size_t)(end - at));
			at += size;
		}
	}
	return text.size - (size_t)(end - at);
}

void text_repair(struct rlmd_text text, struct evbuffer *out)
{
	while (text.size) {
		size_t valid = valid_prefix(text);

		buffer_add(out, text.bytes, valid);
		text = text_slice(text, valid, text.size);
		if (text.size) {
			buffer_add(out, "\xef\xbf\xbd", 3);
			text = text_slice(text, text_invalid(text), text.size);
		}
	}
}

bool text_is_utf8(struct rlmd_text text)
{
	return valid_prefix(text) == text.size;
}

struct rlmd_text text_in(struct evbuffer *buffer)
{
	const unsigned char *bytes = buffer_pullup(buffer, -1);

	return text_from(bytes ? (const char *)bytes : "", evbuffer_get_length(buffer));
}

char *text_drain(struct evbuffer *buffer, size_t *ret_size)
{
	size_t size = evbuffer_get_length(buffer);
	char *string = xreallocarray(NULL, size + 1, 1);

	if (size)
		evbuffer_remove(buffer, string, size);
	string[size] = '\0';
	if (ret_size)
		*ret_size = size;
	return string;
}

static void scan_invalid(struct text_scan *scan, size_t bytes)
{
	scan->invalid += bytes;
	scan->characters += bytes;
	if (scan->highest < 0xdcff)
		scan->highest = 0xdcff; /* surrogateescape makes it U+DC80..U+DCFF */
	scan->need = scan->have = 0;
}

static void scan_lead(struct text_scan *scan, uint8_t c)
{
	if (c < 0xc2 || c > 0xf4) {
		scan_invalid(scan, 1);
		return;
	}
	scan->need = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	scan->have = 0;
	scan->point = c & (0x3f >> scan->need);
	scan->low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	scan->high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
}

static void scan_byte(struct text_scan *scan, uint8_t c)
{
	if (scan->need && (c < scan->low || c > scan->high))
		scan_invalid(scan, scan->have + 1U);
	if (!scan->need) {
		if (c >= 0x80) {
			scan_lead(scan, c);
			return;
		}
		scan->characters++;
		return;
	}
	scan->point = scan->point << 6 | (c & 0x3f);
	scan->low = 0x80;
	scan->high = 0xbf;
	if (++scan->have < scan->need)
		return;
	scan->characters++;
	if (scan->highest < scan->point)
		scan->highest = scan->point;
	scan->need = scan->have = 0;
}

/* Takes whole characters; returns where there is something else, or the end. */
static const char *scan_characters(struct text_scan *scan, const char *at, const char *end)
{
	while (at < end) {
		size_t size = 1;

		for (; end - at >= BLOCK && !block_beyond_ascii(block_load(at)); at += BLOCK)
			scan->characters += BLOCK;
		if (at < end && (unsigned char)*at >= 0x80) {
			uint32_t point;

			size = utf8_sequence(at, (size_t)(end - at));
			if (!size)
				break;
			point = utf8_point(at, size);
			scan->highest = scan->highest < point ? point : scan->highest;
		}
		if (at < end) {
			scan->characters++;
			at += size;
		}
	}
	return at;
}

void text_scan_feed(struct text_scan *scan, struct rlmd_text text)
{
	const char *at = text.bytes, *end = at ? at + text.size : at;

	scan->bytes += text.size;
	scan->line_feeds += count_bytes(text, '\n', '\n');
	token_scan_feed(&scan->tokens, text);
	while (at < end) {
		if (!scan->need)
			at = scan_characters(scan, at, end);
		if (at < end)
			scan_byte(scan, (uint8_t)*at++);
	}
}

void text_scan_end(struct text_scan *scan)
{
	if (scan->need)
		scan_invalid(scan, scan->have + 1U);
}

void text_scan_add(struct text_scan *scan, const struct text_scan *more)
{
	scan->bytes += more->bytes;
	scan->characters += more->characters;
	scan->invalid += more->invalid;
	scan->line_feeds += more->line_feeds;
	if (scan->highest < more->highest)
		scan->highest = more->highest;
	token_counts_add(&scan->tokens.counts, &more->tokens.counts);
}

int64_t text_scan_tokens(const struct text_scan *scan)
{
	return token_estimate(&scan->tokens.counts);
}

int64_t text_tokens(struct rlmd_text text)
{
	struct token_scan scan = {0};

	token_scan_feed(&scan, text);
	return token_estimate(&scan.counts);
}

size_t text_scan_python_size(const struct text_scan *scan)
{
	size_t width = scan->highest < 0x100 ? 1 : scan->highest < 0x10000 ? 2 : 4;

	return scan->characters * width + 80;
}
