#include "base/json_ahead.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_scan.h"

enum { SHORT = 256 }; /* bytes of a string that is not worth a note */

void json_ahead_done(struct json_ahead *ahead)
{
	free(ahead->strings);
	*ahead = (struct json_ahead){0};
}

/* In the place of the last one, if that was short. */
static struct json_ahead_string *add(struct json_ahead *ahead, size_t start)
{
	struct json_ahead_string *last = ahead->count ? &ahead->strings[ahead->count - 1] : NULL;

	if (!last || last->checked - last->start >= SHORT) {
		if (ahead->count == ahead->room) {
			ahead->room = ahead->room ? 2 * ahead->room : 4;
			ahead->strings = xreallocarray(ahead->strings, ahead->room,
						       sizeof *ahead->strings);
		}
		last = &ahead->strings[ahead->count++];
	}
	*last = (struct json_ahead_string){.start = start, .checked = start};
	return last;
}

/* Between strings nothing is of interest but where the next one begins. */
static bool enter(struct json_ahead *ahead, struct rlmd_text text)
{
	const char *quote = memchr(text.bytes + ahead->at, '"', text.size - ahead->at);

	ahead->inside = quote;
	ahead->at = quote ? (size_t)(quote - text.bytes) + 1 : text.size;
	if (quote)
		add(ahead, ahead->at);
	return quote;
}

/* Goes on in a string; true at its end. What stops it before may be a character of which half has
 * come, or an error, which who scans will find there. */
static bool go_on(struct json_ahead *ahead, struct rlmd_text text)
{
	struct json_ahead_string *string = &ahead->strings[ahead->count - 1];
	const char *end = text.bytes + text.size;
	const char *at = json_scan_inside(text.bytes + string->checked, end, &string->escaped);

	ahead->at = string->checked = (size_t)(at - text.bytes);
	if (at == end || *at != '"')
		return false;
	ahead->inside = false;
	ahead->at++;
	return true;
}

void json_ahead_feed(struct json_ahead *ahead, struct rlmd_text so_far)
{
	assert(so_far.size >= ahead->at);
	ahead->start = so_far.bytes;
	while (ahead->at < so_far.size &&
	       (ahead->inside ? go_on(ahead, so_far) : enter(ahead, so_far)))
		;
}

static int compare(const void *place, const void *string)
{
	size_t wanted = *(const size_t *)place;
	size_t start = ((const struct json_ahead_string *)string)->start;

	return (wanted > start) - (wanted < start);
}

const char *json_ahead_skip(const struct json_ahead *ahead, const char *inside, bool *ret_escaped)
{
	size_t start = (size_t)(inside - ahead->start);
	const struct json_ahead_string *string = NULL;

	if (ahead->count)
		string = bsearch(&start, ahead->strings, ahead->count, sizeof *string, compare);
	if (!string)
		return inside;
	*ret_escaped |= string->escaped;
	return ahead->start + string->checked;
}
