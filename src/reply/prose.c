#include "reply/prose.h"

#include <string.h>

enum { TRIES_MAX = 32 }; /* answers that were never closed, so that no text takes longer */

size_t prose_start(struct rlmd_text text, struct range line)
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

bool prose_line(struct prose *prose, struct range *ret)
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
		if (next == line.end && !in_span(prose, prose_start(prose->text, line))) {
			*ret = line;
			return true;
		}
	}
	return false;
}
