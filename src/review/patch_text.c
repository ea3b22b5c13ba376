#include "review/patch_text.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"

enum { CONTEXT = 3 };

void patch_file_add(struct patch_file *patch, size_t line, size_t removed, struct rlmd_text added)
{
	struct patch_edit *edit;

	patch->edits = xreallocarray(patch->edits, patch->count + 1, sizeof *patch->edits);
	edit = &patch->edits[patch->count++];
	*edit = (struct patch_edit){.line = line, .removed = removed, .added = evbuffer_new()};
	evbuffer_add(edit->added, added.bytes, added.size);
}

void patch_file_done(struct patch_file *patch)
{
	for (size_t i = 0; i < patch->count; i++)
		evbuffer_free(patch->edits[i].added);
	free(patch->edits);
	*patch = (struct patch_file){0};
}

void patch_free(struct patch *patch)
{
	for (size_t i = 0; patch && i < patch->count; i++)
		patch_file_done(&patch->files[i]);
	if (patch)
		free(patch->files);
	free(patch);
}

static size_t count_lines(struct rlmd_text text)
{
	size_t lines = 0;

	for (size_t at = 0; at < text.size; at = text_line_end(text, at))
		lines++;
	return lines;
}

static void write_line(struct evbuffer *out, char mark, struct rlmd_text line)
{
	evbuffer_add(out, &mark, 1);
	evbuffer_add(out, line.bytes, line.size);
	if (!line.size || line.bytes[line.size - 1] != '\n')
		evbuffer_add_printf(out, "\n\\ No newline at end of file\n");
}

static void write_old(struct evbuffer *out, char mark, const struct code_file *file, size_t first,
		      size_t end)
{
	for (size_t line = first; line < end; line++)
		write_line(out, mark, code_line(file, line));
}

/* The edits from `first` to before `end`, which are near each other, as one hunk; `shift` is how
 * many lines those before have added, and becomes that with these. */
static void write_hunk(const struct patch_file *patch, size_t first, size_t end, int64_t *shift,
		       struct evbuffer *out)
{
	const struct patch_edit *last = &patch->edits[end - 1];
	size_t from = patch->edits[first].line > CONTEXT ? patch->edits[first].line - CONTEXT : 1;
	size_t to = last->line + last->removed + CONTEXT; /* behind the last line */
	auto_evbuffer struct evbuffer *body = evbuffer_new();
	size_t old, at = from;
	int64_t more = 0;

	if (to > patch->file->lines + 1)
		to = patch->file->lines + 1;
	for (size_t i = first; i < end; i++) {
		const struct patch_edit *edit = &patch->edits[i];
		struct rlmd_text added = text_in(edit->added);

		write_old(body, ' ', patch->file, at, edit->line);
		at = edit->line + edit->removed;
		write_old(body, '-', patch->file, edit->line, at);
		for (size_t k = 0; k < added.size; k = text_line_end(added, k))
			write_line(body, '+', text_slice(added, k, text_line_end(added, k)));
		more += (int64_t)count_lines(added) - (int64_t)edit->removed;
	}
	write_old(body, ' ', patch->file, at, to);
	old = to - from;
	evbuffer_add_printf(out, "@@ -%zu,%zu +%lld,%lld @@\n", old ? from : from - 1, old,
			    (long long)((int64_t)from + *shift - !((int64_t)old + more)),
			    (long long)((int64_t)old + more));
	evbuffer_add_buffer(out, body);
	*shift += more;
}

void patch_file_write(const struct patch_file *patch, struct evbuffer *out)
{
	const char *path = patch->file->name;
	int64_t shift = 0;

	evbuffer_add_printf(out, "diff --git a/%s b/%s\n--- a/%s%s\n+++ b/%s%s\n", path, path, path,
			    strchr(path, ' ') ? "\t" : "", path, strchr(path, ' ') ? "\t" : "");
	for (size_t i = 0, end; i < patch->count; i = end) {
		for (end = i + 1; end < patch->count; end++) {
			const struct patch_edit *before = &patch->edits[end - 1];

			if (patch->edits[end].line > before->line + before->removed + 2 * CONTEXT)
				break;
		}
		write_hunk(patch, i, end, &shift, out);
	}
}
