#include "engine/markdown.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"

enum { TAB_STOP = 4, CLOSING_INDENT_MAX = 3 };

/* A line that begins with three or more backticks or tildes. */
struct mark {
	char character;
	size_t length;
	size_t columns;   /* in front of it */
	struct text info; /* behind it, trimmed */
};

static size_t line_end(struct text text, size_t start)
{
	const char *feed = memchr(text.bytes + start, '\n', text.size - start);

	return feed ? (size_t)(feed - text.bytes) + 1 : text.size;
}

static struct text slice(struct text text, size_t start, size_t end)
{
	return text_from(text.bytes + start, end - start);
}

/* Skips blanks from `at` on; `columns` moves on by the width that they have. */
static size_t skip_blanks(struct text line, size_t at, size_t *columns)
{
	for (; at < line.size; at++)
		if (line.bytes[at] == ' ')
			*columns += 1;
		else if (line.bytes[at] == '\t')
			*columns += TAB_STOP - *columns % TAB_STOP;
		else
			break;
	return at;
}

/* How long the list marker at `at` is; 0 where there is none. */
static size_t list_marker(struct text line, size_t at)
{
	size_t end = at;

	while (end < line.size && end - at < 9 && line.bytes[end] >= '0' && line.bytes[end] <= '9')
		end++;
	if (end < line.size && memchr(end > at ? ".)" : "-+*", line.bytes[end], end > at ? 2 : 3))
		end++;
	else
		return 0;
	return end < line.size && (line.bytes[end] == ' ' || line.bytes[end] == '\t') ? end - at
										      : 0;
}

static bool mark_read(struct text line, bool in_list, struct mark *ret)
{
	size_t columns = 0, at = skip_blanks(line, 0, &columns), end, marker;

	while (in_list && (marker = list_marker(line, at))) {
		columns += marker;
		at = skip_blanks(line, at + marker, &columns);
	}
	if (at == line.size || (line.bytes[at] != '`' && line.bytes[at] != '~'))
		return false;
	for (end = at; end < line.size && line.bytes[end] == line.bytes[at];)
		end++;
	*ret = (struct mark){
		.character = line.bytes[at],
		.length = end - at,
		.columns = columns,
		.info = text_trim(slice(line, end, line.size)),
	};
	return ret->length >= 3;
}

/* Backticks behind the fence make the line a paragraph with an inline span. */
static bool opens(const struct mark *mark)
{
	return mark->character == '~' || !mark->info.size ||
	       !memchr(mark->info.bytes, '`', mark->info.size);
}

static bool closes(const struct mark *mark, const struct mark *opening)
{
	return mark->character == opening->character && mark->length >= opening->length &&
	       !mark->info.size && mark->columns <= opening->columns + CLOSING_INDENT_MAX;
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '+' || c == '#' || c == '.';
}

static bool is_python(struct text info)
{
	static const char *const names[] = {"repl", "python", "py", "python3", "py3"};
	size_t size = 0;

	while (size < info.size && is_word(info.bytes[size]))
		size++;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strlen(names[i]) == size && !strncasecmp(info.bytes, names[i], size))
			return true;
	return false;
}

/* Room for one more in an array that doubles whenever its count is a power of two. */
static void *grown(void *array, size_t count, size_t size)
{
	if (count & (count - 1))
		return array;
	return xreallocarray(array, count ? count * 2 : 1, size);
}

/* The fence that the line at `start` opens, as far as it goes. Returns its end. */
static size_t read_fence(struct text text, size_t start, const struct mark *opening,
			 struct markdown *md)
{
	size_t body = line_end(text, start), at = body, end = body;
	bool closed = false;
	struct mark mark;

	while (at < text.size && !closed) {
		end = line_end(text, at);
		closed = mark_read(slice(text, at, end), false, &mark) && closes(&mark, opening);
		if (!closed)
			at = end;
	}
	md->fences = grown(md->fences, md->fence_count, sizeof *md->fences);
	md->fences[md->fence_count++] = (struct fence){
		.whole = {start, end},
		.body = {body, at},
		.columns = opening->columns,
		.python = is_python(opening->info),
	};
	md->open = !closed;
	return end;
}

static void read_fences(struct text text, struct markdown *md)
{
	for (size_t at = 0; at < text.size;) {
		size_t end = line_end(text, at);
		struct mark mark;

		if (mark_read(slice(text, at, end), true, &mark) && opens(&mark))
			end = read_fence(text, at, &mark, md);
		at = end;
	}
}

/* Backticks in a row. Two of one length in one paragraph make a span. */
struct run {
	size_t at, length, paragraph;
	size_t partner; /* its index + 1, or 0 */
};

struct runs {
	struct run *runs; /* owned */
	size_t count, longest, paragraph;
};

static void read_runs(struct text text, size_t start, size_t end, struct runs *found)
{
	while (start < end) {
		const char *tick = memchr(text.bytes + start, '`', end - start);
		struct run run = {.paragraph = found->paragraph};

		if (!tick)
			return;
		run.at = start = (size_t)(tick - text.bytes);
		while (start < end && text.bytes[start] == '`')
			start++;
		run.length = start - run.at;
		if (found->longest < run.length)
			found->longest = run.length;
		found->runs = grown(found->runs, found->count, sizeof *found->runs);
		found->runs[found->count++] = run;
	}
}

static void pair_runs(struct runs *found)
{
	size_t *last = xcalloc(found->longest + 1, sizeof *last); /* by length: index + 1 */

	for (size_t i = found->count; i--;) {
		struct run *run = &found->runs[i];
		size_t next = last[run->length];

		if (next && found->runs[next - 1].paragraph == run->paragraph)
			run->partner = next;
		last[run->length] = i + 1;
	}
	free(last);
}

static void read_spans(struct text text, struct markdown *md)
{
	struct runs found = {0};
	size_t fence = 0;

	for (size_t at = 0, end; at < text.size; at = end) {
		if (fence < md->fence_count && md->fences[fence].whole.start == at) {
			end = md->fences[fence++].whole.end;
			found.paragraph++;
			continue;
		}
		end = line_end(text, at);
		if (!text_trim(slice(text, at, end)).size)
			found.paragraph++;
		read_runs(text, at, end, &found);
	}
	pair_runs(&found);
	for (size_t i = 0; i < found.count; i++) {
		const struct run *opening = &found.runs[i], *closing;

		if (!opening->partner)
			continue;
		i = opening->partner - 1;
		closing = &found.runs[i];
		md->spans = grown(md->spans, md->span_count, sizeof *md->spans);
		md->spans[md->span_count++] = (struct range){opening->at,
							     closing->at + closing->length};
	}
	free(found.runs);
}

void markdown_read(struct text text, struct markdown *ret)
{
	*ret = (struct markdown){0};
	read_fences(text, ret);
	read_spans(text, ret);
}

void markdown_done(struct markdown *md)
{
	free(md->fences);
	free(md->spans);
	*md = (struct markdown){0};
}

/* The line without its end, be that a line feed or CRLF. */
static struct text bare(struct text line)
{
	if (line.size && line.bytes[line.size - 1] == '\n')
		line.size--;
	if (line.size && line.bytes[line.size - 1] == '\r')
		line.size--;
	return line;
}

/*
 * The columns to take off each line: the fence's own, as CommonMark has it; or
 * those that all lines have in common, for Python refuses a block that is
 * indented as a whole.
 */
static size_t common_columns(struct text text, const struct fence *fence)
{
	size_t least = SIZE_MAX;

	for (size_t at = fence->body.start, end; at < fence->body.end; at = end) {
		size_t columns = 0;
		struct text line;

		end = line_end(text, at);
		line = bare(slice(text, at, end));
		if (skip_blanks(line, 0, &columns) < line.size && columns < least)
			least = columns;
	}
	return least == SIZE_MAX || least < fence->columns ? fence->columns : least;
}

/* Without its first `columns` columns, as far as they are blank; a tab is never split. */
static struct text outdented(struct text line, size_t columns)
{
	size_t at = 0, width = 0;

	while (at < line.size && width < columns) {
		size_t next = skip_blanks(text_from(line.bytes, at + 1), at, &width);

		if (next == at || width > columns)
			break;
		at = next;
	}
	return slice(line, at, line.size);
}

size_t markdown_code(struct text text, const struct fence *fence, char *out)
{
	size_t columns = common_columns(text, fence), used = 0;

	for (size_t at = fence->body.start, end; at < fence->body.end; at = end) {
		struct text line;

		end = line_end(text, at);
		line = outdented(bare(slice(text, at, end)), columns);
		if (at > fence->body.start)
			out[used++] = '\n';
		memcpy(out + used, line.bytes, line.size);
		used += line.size;
	}
	while (used && out[used - 1] == '\n')
		used--;
	return used;
}
