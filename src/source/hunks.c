#include "source/hunks.h"

#include <event2/buffer.h>
#include <git2.h>

#include "base/cleanup.h"
#include "base/json.h"

enum { CONTEXT_LINES = 3 };

/* The lines that are new in a hunk, as pairs; -1 where none is open. */
struct pairs {
	json_t *array; /* owned */
	int first, last;
};

static void end_pair(struct pairs *pairs)
{
	if (pairs->first > 0)
		json_array_append_new(pairs->array, json_pack("[i, i]", pairs->first, pairs->last));
	pairs->first = 0;
}

static void take_line(const git_diff_line *line, struct pairs *pairs, struct evbuffer *out)
{
	bool added = line->origin == GIT_DIFF_LINE_ADDITION;

	if (added || line->origin == GIT_DIFF_LINE_DELETION ||
	    line->origin == GIT_DIFF_LINE_CONTEXT)
		evbuffer_add(out, &line->origin, 1);
	evbuffer_add(out, line->content, line->content_len);
	if (!added) {
		if (line->origin == GIT_DIFF_LINE_CONTEXT)
			end_pair(pairs);
		return;
	}
	if (pairs->first <= 0)
		pairs->first = line->new_lineno;
	pairs->last = line->new_lineno;
}

static json_t *make_hunk(git_patch *patch, size_t index)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	struct pairs pairs = {json_array(), 0, 0};
	const git_diff_hunk *hunk;
	const git_diff_line *line;
	size_t lines;

	git_patch_get_hunk(&hunk, &lines, patch, index);
	evbuffer_add(out, hunk->header, hunk->header_len);
	for (size_t i = 0; i < lines; i++)
		if (!git_patch_get_line_in_hunk(&line, patch, index, i))
			take_line(line, &pairs, out);
	end_pair(&pairs);
	return json_pack("{s: i, s: i, s: o, s: o}", "start",
			 hunk->new_lines ? hunk->new_start : hunk->new_start + 1, "end",
			 hunk->new_start + hunk->new_lines - (hunk->new_lines ? 1 : 0), "text",
			 json_from_text(text_in(out)), "changed", pairs.array);
}

json_t *hunks_between(struct rlmd_text before, struct rlmd_text after)
{
	git_diff_options options;
	git_patch *patch = NULL;
	json_t *hunks = json_array();

	git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
	options.context_lines = CONTEXT_LINES;
	if (git_patch_from_buffers(&patch, before.bytes ? before.bytes : "", before.size, NULL,
				   after.bytes ? after.bytes : "", after.size, NULL, &options))
		return hunks;
	for (size_t i = 0; i < git_patch_num_hunks(patch); i++)
		json_array_append_new(hunks, make_hunk(patch, i));
	git_patch_free(patch);
	return hunks;
}
