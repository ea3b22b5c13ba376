#include "reply/unread.h"

#include <string.h>

#include "base/array.h"
#include "reply/markdown.h"
#include "reply/shape.h"
#include "reply/toolcall.h"

/* Languages of data and of text: a block of one is no attempt at code. */
static bool is_data(struct rlmd_text name)
{
	static const char *const names[] = {
		"json", "yaml", "csv",      "xml", "html",   "toml", "diff",
		"text", "txt",  "markdown", "md",  "output", "log",  "plaintext",
	};

	return !name.size || array_has(names, sizeof names / sizeof *names, name);
}

static bool find_language(struct rlmd_text text, const struct markdown *md,
			  struct rlmd_text *ret_name)
{
	for (size_t i = 0; i < md->fence_count; i++) {
		*ret_name = fence_info(text, &md->fences[i]);
		if (!is_data(*ret_name))
			return true;
	}
	*ret_name = text_of("");
	return false;
}

static bool find_call(struct rlmd_text text, const struct markdown *md)
{
	struct prose prose = {.text = text, .markdown = md};
	struct range line = {0, text.size};

	if (toolcall_begins(text, line))
		return true;
	for (size_t i = 0; i < md->fence_count; i++)
		if (toolcall_begins(text, md->fences[i].body))
			return true;
	while (markdown_prose_line(&prose, &line)) {
		line.start = markdown_line_start(text, line);
		if (toolcall_begins(text, line))
			return true;
	}
	return false;
}

static bool find_lines(struct rlmd_text text, const struct markdown *md)
{
	struct prose prose = {.text = text, .markdown = md};
	struct range line;

	while (markdown_prose_line(&prose, &line))
		if (shape_of(text_slice(text, line.start, line.end)) == SHAPE_STATEMENTS)
			return true;
	return false;
}

enum unread unread_find(struct rlmd_text said, struct rlmd_text *ret_name)
{
	enum unread found = UNREAD_WORDS;
	struct markdown md;

	markdown_read(said, &md);
	*ret_name = text_of("");
	if (find_call(said, &md))
		found = UNREAD_TOOL;
	else if (find_language(said, &md, ret_name))
		found = UNREAD_LANGUAGE;
	else if (find_lines(said, &md))
		found = UNREAD_LINES;
	markdown_done(&md);
	return found;
}

struct rlmd_text unread_sentence(struct rlmd_text said)
{
	static const char *const ends[] = {". ", "! ", "? ", ": ", "\xe3\x80\x82"};
	struct rlmd_text line = text_last_line(said);
	size_t start = 0;

	for (size_t at = 0; at < line.size; at++)
		for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
			size_t end = at + strlen(ends[i]);

			if (end < line.size &&
			    text_starts(text_slice(line, at, line.size), ends[i]))
				start = end;
		}
	return text_trim(text_slice(line, start, line.size));
}
