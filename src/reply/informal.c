/*
 * 1. A code span counts where it is all of its line, a fence where its language is a name for text
 *    (text, markdown, answer) or it has none; and both where the marker is all that is in them. Of
 *    several the last counts.
 * 2. \boxed{...}, as models of mathematics are trained to end, counts in the last line, with
 *    nothing but punctuation behind it, which may have lines of its own.
 * 3. "Final answer:" counts at the start of the last line, or in front of the rest of the text on a
 *    line of its own. Markdown's decoration may stand around it.
 * 4. Words that stand for an answer (marker_is_value()), and dots, are none.
 */
#include "reply/informal.h"

#include <string.h>

#include "base/array.h"

static struct marker direct(struct rlmd_text text, size_t start, struct rlmd_text value)
{
	if (!marker_is_value(value))
		return (struct marker){0};
	return (struct marker){
		.kind = RLMD_ANSWER_DIRECT,
		.whole = {start, text.size},
		.argument = value,
		.leads = LEADS_LINE,
	};
}

/* The marker, where it is all of what stands between the two. */
static struct marker only_marker(struct rlmd_text text, struct range inner, struct range whole)
{
	struct rlmd_text body = text_trim(text_slice(text, inner.start, inner.end));
	struct marker found = {0}, form;
	struct markdown md;

	if (body.size && body.bytes[body.size - 1] == ')') {
		markdown_read(body, &md);
		found = marker_find(body, &md, true, &form);
		markdown_done(&md);
		if (found.whole.start || found.whole.end < body.size)
			found.kind = RLMD_ANSWER_NONE;
	}
	found.whole = whole;
	return found;
}

static bool is_line(struct rlmd_text text, struct range range)
{
	size_t start = range.start;

	while (start && text_is_one_of(text.bytes[start - 1], " \t*>"))
		start--;
	while (range.end < text.size && text_is_one_of(text.bytes[range.end], " \t\r*."))
		range.end++;
	return (!start || text.bytes[start - 1] == '\n') &&
	       (range.end == text.size || text.bytes[range.end] == '\n');
}

/* Rule 1, of spans. */
static struct marker find_in_spans(struct rlmd_text text, const struct markdown *md)
{
	for (size_t i = md->span_count; i--;) {
		struct range span = md->spans[i], inner = span;
		struct marker found;

		while (inner.start < inner.end && text.bytes[inner.start] == '`')
			inner.start++;
		while (inner.end > inner.start && text.bytes[inner.end - 1] == '`')
			inner.end--;
		if (!is_line(text, span))
			continue;
		found = only_marker(text, inner, span);
		if (found.kind)
			return found;
	}
	return (struct marker){0};
}

static bool is_text(struct rlmd_text text, const struct fence *fence)
{
	static const char *const names[] = {"",         "text", "txt",   "plaintext",
					    "markdown", "md",   "answer"};

	return array_has(names, sizeof names / sizeof *names, fence_info(text, fence));
}

/* Rule 1, of fences. */
static struct marker find_in_fences(struct rlmd_text text, const struct markdown *md)
{
	for (size_t i = md->fence_count; i--;) {
		const struct fence *fence = &md->fences[i];
		struct marker found;

		if (!is_text(text, fence))
			continue;
		found = only_marker(text, fence->body, fence->whole);
		if (found.kind)
			return found;
	}
	return (struct marker){0};
}

/* Rule 2. */
static struct marker find_boxed(struct rlmd_text text)
{
	static const char boxed[] = "\\boxed{", words[] = "\\text{";
	static const char punctuation[] = " $.)]\\*_\t\r\n";
	struct rlmd_text line, value = {0};
	const char *found, *last = NULL;
	size_t depth = 1, at, end = text.size;

	while (end && text_is_one_of(text.bytes[end - 1], punctuation))
		end--;
	line = text_last_line(text_slice(text, 0, end));
	found = line.bytes;
	while ((found = text_find(text_from(found, line.size - (size_t)(found - line.bytes)),
				  boxed)))
		last = found++;
	if (!last)
		return (struct marker){0};
	at = (size_t)(last - line.bytes) + strlen(boxed);
	value.bytes = line.bytes + at;
	for (; at < line.size && depth; at++) {
		depth += line.bytes[at] == '{';
		depth -= line.bytes[at] == '}';
	}
	value.size = (size_t)(line.bytes + at - value.bytes) - 1;
	if (depth || at < line.size)
		return (struct marker){0};
	if (text_starts(value, words) && value.bytes[value.size - 1] == '}')
		value = text_slice(value, strlen(words), value.size - 1);
	return direct(text, (size_t)(last - text.bytes), text_trim(value));
}

static struct rlmd_text undecorated(struct rlmd_text text)
{
	static const char *const marks[] = {"**", "__", "`"};

	text = text_trim(text);
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		size_t size = strlen(marks[i]);

		if (text.size > 2 * size && text_starts(text, marks[i]) &&
		    !memcmp(text.bytes + text.size - size, marks[i], size))
			text = text_trim(text_slice(text, size, text.size - size));
	}
	return text;
}

/* Rule 3, of one line. The value is what stands behind the words on it, perhaps nothing. */
static bool is_label(struct rlmd_text line, struct rlmd_text *ret_value)
{
	static const char words[] = "final answer";
	size_t at = 0;
	bool decorated, colon;

	line = text_trim(line);
	while (at < line.size && text_is_one_of(line.bytes[at], " *_#>"))
		at++;
	decorated = at > 0;
	if (!text_starts_caseless(text_slice(line, at, line.size), words))
		return false;
	at += strlen(words);
	while (at < line.size && text_is_one_of(line.bytes[at], "*_ \t"))
		at++;
	colon = at < line.size && line.bytes[at] == ':';
	at += colon;
	/* Of decoration around the words, or the words and the value. */
	while (decorated && at < line.size && text_is_one_of(line.bytes[at], "*_"))
		at++;
	*ret_value = text_trim(text_slice(line, at, line.size));
	while (decorated && ret_value->size && !text_is_one_of(ret_value->bytes[0], "*_") &&
	       text_is_one_of(ret_value->bytes[ret_value->size - 1], "*_"))
		ret_value->size--;
	return colon || (decorated && !ret_value->size);
}

/* Rule 3. */
static struct marker find_labelled(struct rlmd_text text, const struct markdown *md)
{
	struct prose prose = {.text = text, .markdown = md};
	struct marker found = {0};
	struct range line;

	while (markdown_prose_line(&prose, &line)) {
		struct rlmd_text rest = text_trim(text_slice(text, line.end, text.size)), value;

		if (!is_label(text_slice(text, line.start, line.end), &value))
			continue;
		found = value.size && rest.size
				? (struct marker){0}
				: direct(text, line.start, undecorated(value.size ? value : rest));
	}
	return found;
}

struct marker informal_find(struct rlmd_text text, const struct markdown *md)
{
	struct marker found = find_in_spans(text, md);

	if (!found.kind)
		found = find_in_fences(text, md);
	if (!found.kind)
		found = find_boxed(text);
	if (!found.kind)
		found = find_labelled(text, md);
	return found;
}
