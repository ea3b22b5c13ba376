#include "reply/markdown.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "reply/toolcall.h"

enum { TRIES_MAX = 32 }; /* answers that were never closed, so that no text takes longer */

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
		found->ticks = array_grow(found->ticks, found->count, sizeof *found->ticks);
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
		md->spans = array_grow(md->spans, md->span_count, sizeof *md->spans);
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

/* --- lines of prose -------------------------------------------------------------------------- */

size_t markdown_line_start(struct rlmd_text text, struct range line)
{
	static const char *const unseen[] = {"\xe2\x80\x8b", "\xe2\x81\xa0", "\xef\xbb\xbf"};
	size_t at = line.start;

	while (at < line.end) {
		struct rlmd_text rest = text_slice(text, at, line.end);
		size_t before = at;

		at += rest.bytes[0] == ' ' || rest.bytes[0] == '\t';
		for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++)
			if (at == before && text_starts(rest, unseen[i]))
				at += strlen(unseen[i]);
		if (at == before)
			break;
	}
	return at;
}

/* Behind the parenthesis that closes the one at `at`; 0: none does. */
static size_t close_of(struct rlmd_text text, size_t at)
{
	size_t depth = 0;

	for (; at < text.size; at++) {
		depth += text.bytes[at] == '(';
		if (text.bytes[at] == ')' && !--depth)
			return at + 1;
	}
	return 0;
}

/* The end of an answer that begins with the line; of the line, where none does. */
static size_t answer_end(struct prose *prose, struct range line)
{
	struct rlmd_text text = prose->text;
	size_t at = line.start, end;

	while (at < line.end && strchr(" \t>*#-+", text.bytes[at]) && text.bytes[at])
		at++;
	if (!text_starts(text_slice(text, at, line.end), "FINAL(") || prose->tries == TRIES_MAX)
		return line.end;
	end = close_of(text, at + strlen("FINAL"));
	prose->tries += !end;
	return end > line.end ? text_line_end(text, end) : line.end;
}

static bool in_span(struct prose *prose, size_t at)
{
	const struct markdown *md = prose->markdown;

	while (prose->span < md->span_count && md->spans[prose->span].end <= at)
		prose->span++;
	return prose->span < md->span_count && md->spans[prose->span].start <= at;
}

bool markdown_prose_line(struct prose *prose, struct range *ret)
{
	const struct markdown *md = prose->markdown;

	while (prose->at < prose->text.size) {
		struct range line = {prose->at, text_line_end(prose->text, prose->at)};
		size_t next;

		while (prose->fence < md->fence_count &&
		       md->fences[prose->fence].whole.end <= line.start)
			prose->fence++;
		if (prose->fence < md->fence_count) {
			const struct range *fence = &md->fences[prose->fence].whole;

			if (fence->start <= line.start) {
				prose->at = fence->end;
				continue;
			}
			if (fence->start < line.end)
				line.end = fence->start;
		}
		next = answer_end(prose, line);
		prose->at = next;
		if (next == line.end && !in_span(prose, markdown_line_start(prose->text, line))) {
			*ret = line;
			return true;
		}
	}
	return false;
}
