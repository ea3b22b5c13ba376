#include "base/json_view.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/block.h"
#include "base/buffer.h"

enum { POINT_MAX = 4 }; /* bytes of a character */

static bool hex4(struct rlmd_text text, uint32_t *ret)
{
	uint32_t value = 0;

	if (text.size < 4)
		return false;
	for (size_t i = 0; i < 4; i++) {
		unsigned char c = (unsigned char)text.bytes[i];
		unsigned char letter = c | 0x20;

		if (c >= '0' && c <= '9')
			value = value << 4 | (c - '0');
		else if (letter >= 'a' && letter <= 'f')
			value = value << 4 | (letter - 'a' + 10U);
		else
			return false;
	}
	*ret = value;
	return true;
}

/* \uXXXX, or two of them that are a surrogate pair. */
static size_t unicode_escape(struct rlmd_text text, uint32_t *ret_point)
{
	uint32_t high, low;

	if (text.size < 6 || !hex4(text_slice(text, 2, text.size), &high))
		return 0;
	*ret_point = high;
	if (high < 0xd800 || high > 0xdfff)
		return 6;
	if (high > 0xdbff || text.size < 12 || text.bytes[6] != '\\' || text.bytes[7] != 'u' ||
	    !hex4(text_slice(text, 8, text.size), &low) || low < 0xdc00 || low > 0xdfff)
		return 0;
	*ret_point = 0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00));
	return 12;
}

size_t json_view_escape(struct rlmd_text text, uint32_t *ret_point)
{
	static const char means[UCHAR_MAX + 1] = {
		['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
		['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
	};

	if (text.size < 2)
		return 0;
	if (text.bytes[1] == 'u')
		return unicode_escape(text, ret_point);
	*ret_point = (unsigned char)means[(unsigned char)text.bytes[1]];
	return *ret_point ? 2 : 0;
}

static size_t encode(uint32_t point, char out[static POINT_MAX])
{
	size_t size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
	static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = size - 1; i; i--) {
		out[i] = (char)(0x80 | (point & 0x3f));
		point >>= 6;
	}
	out[0] = (char)(leads[size] | point);
	return size;
}

/*
 * Takes the next part of a string: what comes before its next escape, or that escape, which `room`
 * then holds.
 */
static struct rlmd_text take_part(struct rlmd_text *rest, char room[static POINT_MAX])
{
	const char *escape = rest->size ? memchr(rest->bytes, '\\', rest->size) : NULL;
	size_t plain = escape ? (size_t)(escape - rest->bytes) : rest->size;
	struct rlmd_text part = text_slice(*rest, 0, plain);
	uint32_t point = 0;

	if (!plain && escape) {
		plain = json_view_escape(*rest, &point);
		part = text_from(room, encode(point, room));
	}
	*rest = text_slice(*rest, plain, rest->size);
	return part;
}

bool json_view_is_true(const struct json_view *view)
{
	return view->kind == JSON_VIEW_TRUE;
}

int64_t json_view_integer(const struct json_view *view, int64_t otherwise)
{
	bool negative = view->kind == JSON_VIEW_INTEGER && *view->text.bytes == '-';
	int64_t value = 0;

	if (view->kind != JSON_VIEW_INTEGER)
		return otherwise;
	/* Below zero there is one more. */
	for (size_t i = negative; i < view->text.size; i++)
		value = value * 10 - (view->text.bytes[i] - '0');
	return negative ? value : -value;
}

bool json_view_number(const struct json_view *view, double *ret)
{
	json_error_t error = {0};
	json_auto_t *number = NULL;

	if (view->kind != JSON_VIEW_INTEGER && view->kind != JSON_VIEW_REAL)
		return false;
	/* jansson decides how digits become a double, in any locale. */
	number = json_loadb(view->text.bytes, view->text.size, JSON_DECODE_ANY, &error);
	if (!number && json_error_code(&error) != json_error_numeric_overflow)
		alloc_failed();
	if (number)
		*ret = json_number_value(number);
	else
		*ret = *view->text.bytes == '-' ? -HUGE_VAL : HUGE_VAL;
	return true;
}

bool json_view_equal(const struct json_view *view, const char *string)
{
	struct rlmd_text rest = view->text, part;
	char room[POINT_MAX];
	size_t left;

	if (view->kind != JSON_VIEW_STRING)
		return false;
	if (!view->escaped)
		return text_equal(rest, string);
	left = strlen(string);
	while (rest.size) {
		part = take_part(&rest, room);
		if (part.size > left || memcmp(part.bytes, string, part.size) != 0)
			return false;
		string += part.size;
		left -= part.size;
	}
	return !left;
}

bool json_view_has_nul(const struct json_view *view)
{
	struct rlmd_text rest = view->text;
	bool found = false;
	char room[POINT_MAX];

	if (view->kind != JSON_VIEW_STRING || !view->escaped)
		return false; /* as it is NUL stands in no string */
	while (rest.size && !found) {
		struct rlmd_text part = take_part(&rest, room);

		found = part.size == 1 && !*part.bytes;
	}
	return found;
}

bool json_view_has_text(const struct json_view *view)
{
	return view->kind == JSON_VIEW_STRING && view->text.size;
}

void json_view_append(const struct json_view *view, struct evbuffer *out)
{
	struct evbuffer_iovec room;

	if (view->kind != JSON_VIEW_STRING || !view->text.size)
		return;
	if (!view->escaped) {
		buffer_add(out, view->text.bytes, view->text.size);
		return;
	}
	room = buffer_reserve(out, view->text.size);
	room.iov_len = json_view_copy(view, room.iov_base);
	evbuffer_commit_space(out, &room, 1);
}

/* Copies what comes before the next escape; `size` bytes fit into `out`. */
static size_t copy_plain(const char *at, size_t size, char *out)
{
	size_t plain = 0;

	for (; size - plain >= BLOCK; plain += BLOCK) {
		uint64_t mask = block_equal(block_load(at + plain), '\\');

		memcpy(out + plain, at + plain, BLOCK);
		if (mask)
			return plain + block_first(mask);
	}
	for (; plain < size && at[plain] != '\\'; plain++)
		out[plain] = at[plain];
	return plain;
}

/* Whole characters of a text with escapes, as many as fit; `rest` is what is left. */
static size_t unescape(struct rlmd_text *rest, char *out, size_t room)
{
	const char *at = rest->bytes, *end = at + rest->size;
	char character[POINT_MAX];
	size_t used = 0, size;
	uint32_t point;

	for (;;) {
		size_t left = (size_t)(end - at), fits = room - used;
		size_t plain = copy_plain(at, left < fits ? left : fits, out + used);

		at += plain;
		used += plain;
		if (at == end || *at != '\\')
			break;
		left = json_view_escape(text_from(at, (size_t)(end - at)), &point);
		size = encode(point, character);
		if (size > room - used)
			break;
		memcpy(out + used, character, size);
		at += left;
		used += size;
	}
	for (; at < end && utf8_goes_on((unsigned char)*at); used--)
		at--; /* into the character that the room's end cuts */
	*rest = text_from(at, (size_t)(end - at));
	return used;
}

size_t json_view_copy(const struct json_view *view, char *out)
{
	struct rlmd_text rest = view->kind == JSON_VIEW_STRING ? view->text : text_of("");

	if (view->escaped)
		return unescape(&rest, out, rest.size);
	if (rest.size)
		memcpy(out, rest.bytes, rest.size);
	return rest.size;
}

struct rlmd_text json_view_take(struct json_view *rest, char *room, size_t size)
{
	struct rlmd_text part = rest->text;

	if (rest->kind != JSON_VIEW_STRING)
		return (struct rlmd_text){0};
	if (rest->escaped)
		return text_from(room, unescape(&rest->text, room, size));
	part = text_clip(part, size);
	rest->text = text_slice(rest->text, part.size, rest->text.size);
	return part;
}

struct rlmd_text json_view_text(const struct json_view *view, char **ret_owned)
{
	*ret_owned = NULL;
	if (view->kind != JSON_VIEW_STRING)
		return (struct rlmd_text){0};
	if (!view->escaped)
		return view->text;
	*ret_owned = xreallocarray(NULL, view->text.size + 1, 1);
	return text_from(*ret_owned, json_view_copy(view, *ret_owned));
}
