#include "async/substitute.h"

#include <string.h>

#include "base/alloc.h"

/* ASCII whatever the locale. */
static bool is_id_byte(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c >= 0x80 || (c && strchr("-_.:/@+", c));
}

size_t substitute_id(struct rlmd_text text)
{
	size_t size = 0;

	while (size < text.size && is_id_byte((unsigned char)text.bytes[size]))
		size++;
	return size;
}

static size_t blanks(const char *at, const char *end)
{
	const char *start = at;

	while (at < end && *at == ' ')
		at++;
	return (size_t)(at - start);
}

/* The id between the braces that open at `open`; `ret_close` is behind them. */
static bool reference_at(const char *open, const char *end, struct rlmd_text *ret_id,
			 const char **ret_close)
{
	const char *start = open + 2 + blanks(open + 2, end), *close;
	size_t size = substitute_id((struct rlmd_text){start, (size_t)(end - start)});

	if (!size || size > RLMD_PLAN_ID_MAX)
		return false;
	close = start + size + blanks(start + size, end);
	if (end - close < 2 || close[0] != '}' || close[1] != '}')
		return false;
	*ret_id = (struct rlmd_text){start, size};
	*ret_close = close + 2;
	return true;
}

static bool find_reference(struct rlmd_text text, const char **ret_open, struct rlmd_text *ret_id,
			   const char **ret_close)
{
	const char *at, *end = text.bytes + text.size;

	for (at = text.bytes; (at = memmem(at, (size_t)(end - at), "{{", 2)); at++)
		if (reference_at(at, end, ret_id, ret_close)) {
			*ret_open = at;
			return true;
		}
	return false;
}

static enum substitute_piece take(struct substitute_scan *scan, size_t piece, size_t size,
				  struct rlmd_text *ret_piece)
{
	*ret_piece = (struct rlmd_text){scan->rest.bytes, piece};
	scan->rest.bytes += size;
	scan->rest.size -= size;
	return SUBSTITUTE_TEXT;
}

enum substitute_piece substitute_next(struct substitute_scan *scan, struct rlmd_text *ret_piece)
{
	const char *open, *close;
	struct rlmd_text id;
	size_t before, slashes = 0, raw = scan->raw;

	scan->raw = 0;
	if (!scan->rest.size)
		return SUBSTITUTE_END;
	if (raw)
		return take(scan, raw, raw, ret_piece);
	if (!find_reference(scan->rest, &open, &id, &close))
		return take(scan, scan->rest.size, scan->rest.size, ret_piece);
	before = (size_t)(open - scan->rest.bytes);
	while (slashes < before && open[-1 - (ptrdiff_t)slashes] == '\\')
		slashes++;
	if (slashes % 2)
		scan->raw = (size_t)(close - open);
	if (before)
		return take(scan, before - slashes + slashes / 2, before, ret_piece);
	take(scan, 0, (size_t)(close - open), ret_piece);
	*ret_piece = id;
	return SUBSTITUTE_REFERENCE;
}

char *substitute(struct rlmd_text input, size_t max, substitute_fn *value, void *owner,
		 size_t *ret_size)
{
	struct substitute_scan scan = {.rest = input};
	enum substitute_piece kind;
	struct rlmd_text piece;
	size_t size = 0;
	char *output, *at;

	while ((kind = substitute_next(&scan, &piece)) != SUBSTITUTE_END) {
		if (kind == SUBSTITUTE_REFERENCE)
			piece = value(owner, piece);
		size = piece.size > SIZE_MAX - size ? SIZE_MAX : size + piece.size;
	}
	*ret_size = size;
	if (size > max)
		return NULL;
	output = at = xcalloc(size + 1, 1);
	scan = (struct substitute_scan){.rest = input};
	while ((kind = substitute_next(&scan, &piece)) != SUBSTITUTE_END) {
		if (kind == SUBSTITUTE_REFERENCE)
			piece = value(owner, piece);
		if (piece.size)
			memcpy(at, piece.bytes, piece.size);
		at += piece.size;
	}
	return output;
}
