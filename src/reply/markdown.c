#include "reply/markdown.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "reply/toolcall.h"

/* Room for one more in an array that doubles whenever its count is a power of two. */
static void *grown(void *array, size_t count, size_t size)
{
	if (count & (count - 1))
		return array;
	return xreallocarray(array, count ? count * 2 : 1, size);
}

/* Backticks in a row. Two of one length in one paragraph make a span. */
struct ticks {
	size_t at, length, paragraph;
	size_t partner; /* its index + 1, or 0 */
};

struct all_ticks {
	struct ticks *ticks; /* owned */
	size_t count, longest, paragraph;
};

static void read_ticks(struct rlmd_text text, size_t start, size_t end, struct all_ticks *found)
{
	while (start < end) {
		const char *tick = memchr(text.bytes + start, '`', end - start);
		struct ticks ticks = {.paragraph = found->paragraph};

		if (!tick)
			return;
		ticks.at = start = (size_t)(tick - text.bytes);
		while (start < end && text.bytes[start] == '`')
			start++;
		ticks.length = start - ticks.at;
		if (found->longest < ticks.length)
			found->longest = ticks.length;
		found->ticks = grown(found->ticks, found->count, sizeof *found->ticks);
		found->ticks[found->count++] = ticks;
	}
}

static void pair_ticks(struct all_ticks *found)
{
	size_t *last = xcalloc(found->longest + 1, sizeof *last); /* by length: index + 1 */

	for (size_t i = found->count; i--;) {
		struct ticks *ticks = &found->ticks[i];
		size_t next = last[ticks->length];

		if (next && found->ticks[next - 1].paragraph == ticks->paragraph)
			ticks->partner = next;
		last[ticks->length] = i + 1;
	}
	free(last);
}

static void read_spans(struct rlmd_text text, struct markdown *md)
{
	struct all_ticks found = {0};
	size_t fence = 0;

	for (size_t at = 0, end; at < text.size; at = end) {
		if (fence < md->fence_count && md->fences[fence].whole.start == at) {
			end = md->fences[fence++].whole.end;
			found.paragraph++;
			continue;
		}
		end = text_line_end(text, at);
		if (fence < md->fence_count && md->fences[fence].whole.start < end)
			end = md->fences[fence].whole.start;
		if (!text_trim(text_slice(text, at, end)).size)
			found.paragraph++;
		read_ticks(text, at, end, &found);
	}
	pair_ticks(&found);
	for (size_t i = 0; i < found.count; i++) {
		const struct ticks *opening = &found.ticks[i], *closing;

		if (!opening->partner)
			continue;
		i = opening->partner - 1;
		closing = &found.ticks[i];
		md->spans = grown(md->spans, md->span_count, sizeof *md->spans);
		md->spans[md->span_count++] = (struct range){opening->at,
							     closing->at + closing->length};
	}
	free(found.ticks);
}

void markdown_read(struct rlmd_text text, struct markdown *ret)
{
	*ret = (struct markdown){0};
	ret->fences = fences_read(text, &ret->fence_count, &ret->open);
	toolcalls_read(text, ret);
	read_spans(text, ret);
}

void markdown_done(struct markdown *md)
{
	free(md->fences);
	free(md->spans);
	*md = (struct markdown){0};
}
