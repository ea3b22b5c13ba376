#include "cli/request_line.h"

#include <string.h>

/* What is before the next blank, and the rest behind it; false: there is none. */
static bool take_word(struct rlmd_text *rest, struct rlmd_text *ret)
{
	const char *blank = rest->size ? memchr(rest->bytes, ' ', rest->size) : NULL;
	size_t size;

	if (!blank)
		return false;
	size = (size_t)(blank - rest->bytes);
	*ret = text_slice(*rest, 0, size);
	*rest = text_slice(*rest, size + 1, rest->size);
	return true;
}

/* A query may be anything. */
static struct rlmd_text without_query(struct rlmd_text target)
{
	const char *query = target.size ? memchr(target.bytes, '?', target.size) : NULL;

	return query ? text_slice(target, 0, (size_t)(query - target.bytes)) : target;
}

const char *request_line_read(struct rlmd_text line, struct request_line *ret)
{
	struct rlmd_text method, target;

	if (!take_word(&line, &method) || !take_word(&line, &target) ||
	    (!text_equal(line, "HTTP/1.1") && !text_equal(line, "HTTP/1.0")))
		return "400 Bad Request";
	if (!text_equal(method, "GET") && !text_equal(method, "HEAD"))
		return "405 Method Not Allowed";
	*ret = (struct request_line){text_equal(method, "HEAD"), without_query(target)};
	return NULL;
}
