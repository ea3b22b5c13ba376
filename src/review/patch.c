#include "review/patch.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"

enum { FILES_MAX = 50, CONTEXT = 3 };

/* --- changes of a file, as they stand in a unified diff --------------------------------- */

static void add_to(struct patch_file *patch, size_t line, size_t removed, struct rlmd_text added)
{
	struct patch_edit *edit;

	patch->edits = array_grow(patch->edits, patch->count, sizeof *patch->edits);
	edit = &patch->edits[patch->count++];
	*edit = (struct patch_edit){.line = line, .removed = removed, .added = buffer_new()};
	buffer_add(edit->added, added.bytes, added.size);
}

static size_t count_lines(struct rlmd_text text)
{
	size_t lines = 0;

	for (size_t at = 0; at < text.size; at = text_line_end(text, at))
		lines++;
	return lines;
}

static void write_line(struct evbuffer *out, char sign, struct rlmd_text line)
{
	buffer_add(out, &sign, 1);
	buffer_add(out, line.bytes, line.size);
	if (!line.size || line.bytes[line.size - 1] != '\n')
		buffer_add_printf(out, "\n\\ No newline at end of file\n");
}

static void write_old(struct evbuffer *out, char sign, const struct code_file *file, size_t first,
		      size_t end)
{
	for (size_t line = first; line < end; line++)
		write_line(out, sign, code_line(file, line));
}

/* The edits from `first` to before `end`, which are near each other, as one hunk; `shift` is how
 * many lines those before have added, and becomes that with these. */
static void write_hunk(const struct patch_file *patch, size_t first, size_t end, int64_t *shift,
		       struct evbuffer *out)
{
	const struct patch_edit *last = &patch->edits[end - 1];
	size_t from = patch->edits[first].line > CONTEXT ? patch->edits[first].line - CONTEXT : 1;
	size_t to = last->line + last->removed + CONTEXT; /* behind the last line */
	auto_evbuffer struct evbuffer *body = buffer_new();
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
	buffer_add_printf(out, "@@ -%zu,%zu +%lld,%lld @@\n", old ? from : from - 1, old,
			  (long long)((int64_t)from + *shift - !((int64_t)old + more)),
			  (long long)((int64_t)old + more));
	buffer_add_buffer(out, body);
	*shift += more;
}

/* As git writes it, with three lines of context. */
static void write_file(const struct patch_file *patch, struct evbuffer *out)
{
	const char *path = patch->file->name;
	int64_t shift = 0;

	buffer_add_printf(out, "diff --git a/%s b/%s\n--- a/%s%s\n+++ b/%s%s\n", path, path, path,
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

/* --- reading --------------------------------------------------------------------------- */

/* A diff while it is read. */
struct patch_reader {
	struct code *code;             /* lent */
	const struct finding *finding; /* lent */
	struct rlmd_text text;         /* what is left of it */
	struct patch_file files[FILES_MAX];
	size_t count, hunks;
	const char *wrong; /* static: why it is dropped; NULL: nothing so far */
};

static void drop(struct patch_reader *reader, const char *why)
{
	if (!reader->wrong)
		reader->wrong = why;
}

/* Without what ends it. */
static struct rlmd_text peek(const struct patch_reader *reader)
{
	struct rlmd_text line = text_slice(reader->text, 0, text_line_end(reader->text, 0));

	while (line.size &&
	       (line.bytes[line.size - 1] == '\n' || line.bytes[line.size - 1] == '\r'))
		line.size--;
	return line;
}

static void skip(struct patch_reader *reader)
{
	reader->text = text_slice(reader->text, text_line_end(reader->text, 0), reader->text.size);
}

static bool more(const struct patch_reader *reader)
{
	return !reader->wrong && reader->text.size;
}

/* --- headers ---------------------------------------------------------------------------- */

/* "a/src/x.c\t2026-01-01" -> "src/x.c" */
static struct rlmd_text path_of(struct rlmd_text line, const char *prefix)
{
	const char *tab = memchr(line.bytes, '\t', line.size);

	if (tab)
		line.size = (size_t)(tab - line.bytes);
	line = text_trim(line);
	return text_starts(line, prefix) ? text_slice(line, 2, line.size) : line;
}

static bool can_stand_in_a_patch(const char *path)
{
	for (; *path; path++)
		if ((unsigned char)*path < 0x20 || *path == 0x7f || *path == '"' || *path == '\\')
			return false;
	return true;
}

static struct patch_file *open_file(struct patch_reader *reader, struct rlmd_text path)
{
	const struct code_file *file = code_find(reader->code, path);

	if (!file)
		drop(reader, "it touches a file that was not loaded");
	else if (!can_stand_in_a_patch(file->name))
		drop(reader, "its file has a name that cannot stand in a patch");
	else if (file->repaired)
		drop(reader, "its file is not UTF-8");
	for (size_t i = 0; i < reader->count; i++)
		if (reader->files[i].file == file)
			drop(reader, "it names a file twice");
	if (reader->count == FILES_MAX)
		drop(reader, "it touches too many files");
	if (reader->wrong)
		return NULL;
	reader->files[reader->count].file = file;
	return &reader->files[reader->count++];
}

/* The two lines that name the file, and those of git before them. */
static struct patch_file *read_header(struct patch_reader *reader)
{
	static const char *const other[] = {
		"old mode", "new mode",    "deleted file",   "new file",   "rename ",
		"copy ",    "similarity ", "dissimilarity ", "GIT binary", "Binary files"};
	struct rlmd_text line, old;

	for (; more(reader) && !text_starts(line = peek(reader), "--- "); skip(reader)) {
		if (text_starts(line, "@@ "))
			return open_file(reader, text_of(reader->finding->path));
		for (size_t i = 0; i < sizeof other / sizeof *other; i++)
			if (text_starts(line, other[i]))
				drop(reader, "it does more than to change lines of files");
		if (text_trim(line).size && !text_starts(line, "diff ") &&
		    !text_starts(line, "index "))
			drop(reader, "it is no unified diff");
	}
	if (!more(reader))
		return NULL;
	line = peek(reader);
	old = path_of(text_slice(line, 4, line.size), "a/");
	skip(reader);
	line = peek(reader);
	if (!text_starts(line, "+++ ")) {
		drop(reader, "it is no unified diff");
		return NULL;
	}
	line = path_of(text_slice(line, 4, line.size), "b/");
	skip(reader);
	if (line.size != old.size || memcmp(line.bytes, old.bytes, old.size) != 0) {
		drop(reader, "it creates, removes or renames a file");
		return NULL;
	}
	return open_file(reader, line);
}

/* Whether another file begins here; a removed line may look like half of that. */
static bool at_header(const struct patch_reader *reader)
{
	struct patch_reader ahead = *reader;

	if (text_starts(peek(reader), "diff --git "))
		return true;
	if (!text_starts(peek(reader), "--- "))
		return false;
	skip(&ahead);
	if (!text_starts(peek(&ahead), "+++ "))
		return false;
	skip(&ahead);
	return text_starts(peek(&ahead), "@@ ");
}

/* --- hunks ------------------------------------------------------------------------------ */

/* Its lines as they stand in the diff, with their marks. */
struct hunk {
	struct rlmd_text *lines; /* owned */
	size_t count, old;       /* `old`: those of the file as it is */
	long long named;         /* the line that its head names */
};

static char mark_of(struct rlmd_text line)
{
	return line.size ? line.bytes[0] : ' ';
}

static struct rlmd_text body_of(struct rlmd_text line)
{
	return line.size ? text_slice(line, 1, line.size) : line;
}

static void read_hunk(struct patch_reader *reader, struct hunk *hunk)
{
	struct rlmd_text line = peek(reader);
	auto_free char *head = text_copy(line);
	size_t room = 1;

	hunk->named = strtoll(head + strcspn(head, "-0123456789"), NULL, 10);
	hunk->named = hunk->named < 0 ? -hunk->named : hunk->named;
	for (size_t i = 0; i < reader->text.size; i++)
		room += reader->text.bytes[i] == '\n';
	hunk->lines = xcalloc(room + 1, sizeof *hunk->lines);
	for (skip(reader); more(reader) && !at_header(reader); skip(reader)) {
		line = peek(reader);
		if (text_starts(line, "@@ "))
			break;
		if (mark_of(line) == '\\')
			continue;
		if (!strchr(" +-", mark_of(line))) {
			drop(reader, "it is no unified diff");
			return;
		}
		hunk->lines[hunk->count++] = line;
	}
	while (hunk->count && !hunk->lines[hunk->count - 1].size)
		hunk->count--;
	for (size_t i = 0; i < hunk->count; i++)
		hunk->old += mark_of(hunk->lines[i]) != '+';
}

static struct rlmd_text without_end(struct rlmd_text line)
{
	while (line.size && text_is_space(line.bytes[line.size - 1]))
		line.size--;
	return line;
}

/* White space at the end of lines aside. */
static bool stands_at(const struct code_file *file, size_t line, const struct hunk *hunk)
{
	for (size_t i = 0; i < hunk->count; i++) {
		struct rlmd_text wanted, found;

		if (mark_of(hunk->lines[i]) == '+')
			continue;
		wanted = without_end(body_of(hunk->lines[i]));
		found = without_end(code_line(file, line++));
		if (wanted.size != found.size || memcmp(wanted.bytes, found.bytes, found.size) != 0)
			return false;
	}
	return true;
}

/* How far a line is from a range of lines. */
static size_t distance(size_t line, struct code_range range)
{
	return line < range.first ? range.first - line : line > range.last ? line - range.last : 0;
}

/* The line from `line` on that fits and is nearest to the finding, or to what its head says; 0:
 * none. */
static size_t find_hunk(const struct patch_reader *reader, const struct patch_file *patch,
			const struct hunk *hunk, size_t line)
{
	const struct finding *finding = reader->finding;
	struct code_range near = {(size_t)hunk->named, (size_t)hunk->named};
	size_t best = 0;

	if (finding->anchoring == FINDING_ANCHORED && finding->file == patch->file)
		near = (struct code_range){finding->first, finding->last};
	for (; line + hunk->old <= patch->file->lines + 1; line++) {
		if (++reader->code->work > CODE_WORK_MAX)
			return 0;
		if (stands_at(patch->file, line, hunk) &&
		    (!best || distance(line, near) < distance(best, near)))
			best = line;
	}
	return best;
}

/* As the lines around it end. */
static void add_line(struct evbuffer *out, const struct code_file *file, struct rlmd_text line)
{
	struct rlmd_text first = code_line(file, 1);
	bool crlf = first.size > 1 && first.bytes[first.size - 2] == '\r';

	buffer_add(out, line.bytes, line.size);
	buffer_add_printf(out, crlf ? "\r\n" : "\n");
}

/* Lines behind one that has no line feed: that one gets it, by being written anew. */
static void add_edit(struct patch_file *patch, size_t line, size_t removed, struct evbuffer *added)
{
	const struct code_file *file = patch->file;
	auto_evbuffer struct evbuffer *whole = buffer_new();
	struct rlmd_text last;

	if (!removed && line > file->lines && file->lines) {
		last = code_line(file, file->lines);
		if (last.bytes[last.size - 1] != '\n') {
			line--;
			removed = 1;
			add_line(whole, file, last);
		}
	}
	buffer_add_buffer(whole, added);
	add_to(patch, line, removed, text_in(whole));
}

static bool changes_nothing(const struct code_file *file, size_t line, size_t removed,
			    struct evbuffer *added)
{
	struct rlmd_text old = text_slice(file->text, file->starts[line - 1],
					  file->starts[line - 1 + removed]);
	struct rlmd_text new = text_in(added);

	return old.size == new.size && !memcmp(old.bytes, new.bytes, new.size);
}

/* The runs of changed lines in it, from where it stands. Returns the line behind it. */
static size_t add_edits(struct patch_file *patch, const struct hunk *hunk, size_t line)
{
	for (size_t i = 0; i < hunk->count;) {
		auto_evbuffer struct evbuffer *added = buffer_new();
		size_t removed = 0;

		for (; i < hunk->count && mark_of(hunk->lines[i]) != ' '; i++) {
			if (mark_of(hunk->lines[i]) == '-')
				removed++;
			else
				add_line(added, patch->file, body_of(hunk->lines[i]));
		}
		if (!changes_nothing(patch->file, line, removed, added))
			add_edit(patch, line, removed, added);
		line += removed;
		for (; i < hunk->count && mark_of(hunk->lines[i]) == ' '; i++)
			line++;
	}
	return line;
}

static void read_file(struct patch_reader *reader)
{
	struct patch_file *patch = read_header(reader);
	size_t line = 1;

	while (patch && more(reader) && text_starts(peek(reader), "@@ ")) {
		struct hunk hunk = {0};
		size_t at = 0;

		read_hunk(reader, &hunk);
		if (++reader->hunks > PATCH_HUNKS_MAX)
			drop(reader, "it has too many parts");
		if (!hunk.old)
			drop(reader, "it has lines to add, and none to find their place by");
		if (!reader->wrong && !(at = find_hunk(reader, patch, &hunk, line)))
			drop(reader, reader->code->work > CODE_WORK_MAX
					     ? "there was too much to look for"
					     : "its old lines do not stand in the file");
		if (at)
			line = add_edits(patch, &hunk, at);
		free(hunk.lines);
	}
	if (patch && more(reader) && !at_header(reader) && text_trim(peek(reader)).size)
		drop(reader, "it is no unified diff");
}

/* --- the patch -------------------------------------------------------------------------- */

/* Other control characters could hide text from a reader; form feeds stand in old sources. */
static bool is_seen(struct rlmd_text text)
{
	auto_evbuffer struct evbuffer *escaped = buffer_new();
	size_t feeds = 0;

	text_escape_lines(text, escaped);
	for (size_t i = 0; i < text.size; i++)
		feeds += text.bytes[i] == '\f' || text.bytes[i] == '\r';
	for (size_t i = 0; i < text.size; i++)
		feeds += text.bytes[i] == '\f' ? 2 : 0;
	return evbuffer_get_length(escaped) == text.size + feeds;
}

static char *write_patch(struct patch_reader *reader)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	for (size_t i = 0; i < reader->count; i++)
		if (reader->files[i].count)
			write_file(&reader->files[i], out);
	if (!evbuffer_get_length(out))
		drop(reader, "it changes nothing");
	else if (evbuffer_get_length(out) > FINDING_TEXT_MAX)
		drop(reader, "it is too long");
	else if (!is_seen(text_in(out)))
		drop(reader, "it has characters in it that nobody sees");
	return reader->wrong ? NULL : text_drain(out, NULL);
}

/* The reader keeps none of its edits. */
static struct patch *take_edits(struct patch_reader *reader)
{
	struct patch *patch = xcalloc(1, sizeof *patch);

	patch->files = xcalloc(reader->count, sizeof *patch->files);
	for (size_t i = 0; i < reader->count; i++) {
		if (!reader->files[i].count)
			continue;
		patch->files[patch->count++] = reader->files[i];
		reader->files[i] = (struct patch_file){0};
	}
	return patch;
}

void patch_check(struct code *code, struct finding *finding)
{
	struct patch_reader reader = {.code = code, .finding = finding};
	auto_free char *given = take_pointer(&finding->patch);

	if (!given)
		return;
	reader.text = text_of(given);
	while (more(&reader) && text_trim(reader.text).size)
		read_file(&reader);
	if (!reader.wrong)
		finding->patch = write_patch(&reader);
	if (!reader.wrong)
		finding->edits = take_edits(&reader);
	if (reader.wrong)
		finding->no_patch = xstrdup(reader.wrong);
	for (size_t i = 0; i < reader.count; i++)
		finding_edits_done(&reader.files[i]);
}
