#include "lister/hunks.h"

#include <git2.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"

enum {
	CONTEXT_LINES = 3,
	LINES_MAX = 50000, /* of either text: comparing them takes a fifth of a second at worst */
};

/* The lines of a hunk that were changed, as pairs: those that are new; and where lines are gone and
 * nothing stands in their place, the lines before and behind, which are next to each other now. */
struct pairs {
	json_t *array;   /* owned */
	int first, last; /* of the pair that is open; 0: none is */
	int before;      /* the last line of the new text so far; 0: none */
	bool gone;       /* lines, since then */
};

/* `next` is the line behind, or 0. */
static void end_pair(struct pairs *pairs, int next)
{
	int first = pairs->first ? pairs->first : pairs->before;
	int last = pairs->first ? pairs->last : next ? next : pairs->before;

	if (pairs->first || (pairs->gone && last))
		json_append(pairs->array, json_make("[i, i]", first ? first : last, last));
	pairs->first = 0;
	pairs->gone = false;
}

static void take_line(const git_diff_line *line, struct pairs *pairs, struct evbuffer *out)
{
	bool added = line->origin == GIT_DIFF_LINE_ADDITION;

	if (added || line->origin == GIT_DIFF_LINE_DELETION ||
	    line->origin == GIT_DIFF_LINE_CONTEXT)
		buffer_add(out, &line->origin, 1);
	buffer_add(out, line->content, line->content_len);
	if (line->origin == GIT_DIFF_LINE_DELETION)
		pairs->gone = true;
	if (line->origin == GIT_DIFF_LINE_CONTEXT) {
		end_pair(pairs, line->new_lineno);
		pairs->before = line->new_lineno;
	}
	if (!added)
		return;
	if (!pairs->first)
		pairs->first = line->new_lineno;
	pairs->last = pairs->before = line->new_lineno;
}

static json_t *make_hunk(git_patch *patch, size_t index)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	struct pairs pairs = {.array = json_make_array()};
	const git_diff_hunk *hunk;
	const git_diff_line *line;
	size_t lines;

	git_patch_get_hunk(&hunk, &lines, patch, index);
	buffer_add(out, hunk->header, hunk->header_len);
	for (size_t i = 0; i < lines; i++)
		if (!git_patch_get_line_in_hunk(&line, patch, index, i))
			take_line(line, &pairs, out);
	end_pair(&pairs, 0);
	return json_make("{s: i, s: i, s: o, s: o}", "start",
			 hunk->new_lines ? hunk->new_start : hunk->new_start + 1, "end",
			 hunk->new_start + hunk->new_lines - (hunk->new_lines ? 1 : 0), "text",
			 json_from_text(text_in(out)), "changed", pairs.array);
}

static size_t count_lines(struct rlmd_text text)
{
	size_t lines = 0;

	for (size_t at = 0; at < text.size; at = text_line_end(text, at))
		lines++;
	return lines;
}

/* How many lines are the same at the beginning; and where that ends. */
static size_t count_common(struct rlmd_text before, struct rlmd_text after, size_t *ret_end)
{
	size_t lines = 0, at = 0;

	while (at < before.size && at < after.size) {
		size_t end = text_line_end(before, at);

		if (end != text_line_end(after, at) ||
		    memcmp(before.bytes + at, after.bytes + at, end - at) != 0)
			break;
		at = end;
		lines++;
	}
	*ret_end = at;
	return lines;
}

/* Lines that are the same at the end. */
static size_t count_common_end(struct rlmd_text before, struct rlmd_text after)
{
	size_t lines = 0;

	while (before.size && after.size &&
	       before.bytes[before.size - 1] == after.bytes[after.size - 1]) {
		before.size--;
		after.size--;
		lines += (!before.size || before.bytes[before.size - 1] == '\n') &&
			 (!after.size || after.bytes[after.size - 1] == '\n');
	}
	return lines;
}

/* From the first to the last line that is other, without looking at those between. */
static json_t *one_hunk(struct rlmd_text before, struct rlmd_text after)
{
	size_t end, first = count_common(before, after, &end) + 1;
	size_t last = count_lines(after) - count_common_end(text_slice(before, end, before.size),
							    text_slice(after, end, after.size));
	json_t *changed = json_make_array();

	if (last >= first)
		json_append(changed, json_make("[I, I]", (json_int_t)first, (json_int_t)last));
	return json_make("[{s: I, s: I, s: s, s: o}]", "start", (json_int_t)first, "end",
			 (json_int_t)last, "text", "", "changed", changed);
}

json_t *hunks_between(struct rlmd_text before, struct rlmd_text after)
{
	git_diff_options options;
	git_patch *patch = NULL;
	json_t *hunks = json_make_array();

	if (count_lines(before) > LINES_MAX || count_lines(after) > LINES_MAX) {
		json_decref(hunks);
		return one_hunk(before, after);
	}
	git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
	options.context_lines = CONTEXT_LINES;
	if (git_patch_from_buffers(&patch, before.bytes ? before.bytes : "", before.size, NULL,
				   after.bytes ? after.bytes : "", after.size, NULL, &options))
		return hunks;
	for (size_t i = 0; i < git_patch_num_hunks(patch); i++)
		json_append(hunks, make_hunk(patch, i));
	git_patch_free(patch);
	return hunks;
}
