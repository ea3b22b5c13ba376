#include "review/anchor.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "review/patch.h"

enum { BYTES_OF_A_LINE = 256 }; /* that are searched in the time that comparing one takes */

/* The quote's lines, trimmed, without empty ones at both ends. */
struct quote {
	struct rlmd_text *lines; /* owned; their bytes are lent */
	size_t count;
};

static struct quote quote_of(struct rlmd_text text)
{
	struct quote quote = {0};
	size_t lines = 1;

	text = text_trim(text);
	for (size_t i = 0; i < text.size; i++)
		lines += text.bytes[i] == '\n';
	quote.lines = xcalloc(lines, sizeof *quote.lines);
	for (size_t at = 0, end; at < text.size; at = end) {
		end = text_line_end(text, at);
		quote.lines[quote.count++] = text_trim(text_slice(text, at, end));
	}
	return quote;
}

static bool same(struct rlmd_text a, struct rlmd_text b)
{
	return a.size == b.size && !memcmp(a.bytes, b.bytes, a.size);
}

/* Of letters beyond ASCII none is told from another sign: all of them make words. */
static bool in_word(char c)
{
	unsigned char byte = (unsigned char)c;

	return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
	       (byte >= 'A' && byte <= 'Z') || byte == '_' || byte >= 0x80;
}

/* Whether no word goes on over that place of a line. */
static bool parts_words(struct rlmd_text line, size_t at)
{
	return !at || at == line.size || !in_word(line.bytes[at - 1]) || !in_word(line.bytes[at]);
}

static bool matches_whole(const struct code_file *file, size_t line, const struct quote *quote)
{
	for (size_t i = 0; i < quote->count; i++)
		if (!same(code_line_trimmed(file, line + i), quote->lines[i]))
			return false;
	return true;
}

static bool has_part(struct rlmd_text line, struct rlmd_text part)
{
	size_t at = 0;
	const char *found;

	while (part.size &&
	       (found = memmem(line.bytes + at, line.size - at, part.bytes, part.size))) {
		at = (size_t)(found - line.bytes);
		if (parts_words(line, at) && parts_words(line, at + part.size))
			return true;
		at++;
	}
	return false;
}

static bool ends_with(struct rlmd_text line, struct rlmd_text part)
{
	size_t at = line.size - part.size;

	return line.size >= part.size && same(text_slice(line, at, line.size), part) &&
	       parts_words(line, at);
}

static bool begins_with(struct rlmd_text line, struct rlmd_text part)
{
	return line.size >= part.size && same(text_slice(line, 0, part.size), part) &&
	       parts_words(line, part.size);
}

/* The first line may be the end of one, the last the beginning of one. */
static bool matches_part(const struct code_file *file, size_t line, const struct quote *quote)
{
	size_t last = quote->count - 1;

	if (!last)
		return has_part(code_line_trimmed(file, line), quote->lines[0]);
	for (size_t i = 1; i < last; i++)
		if (!same(code_line_trimmed(file, line + i), quote->lines[i]))
			return false;
	return ends_with(code_line_trimmed(file, line), quote->lines[0]) &&
	       begins_with(code_line_trimmed(file, line + last), quote->lines[last]);
}

static size_t distance(size_t line, int64_t hint)
{
	size_t named = (size_t)hint;

	return line > named ? line - named : named - line;
}

static void note(struct finding *finding, size_t line, size_t count)
{
	bool changed = code_changed(finding->file, line, line + count - 1);
	bool better = !finding->occurrences++;

	if (!better && changed != finding->in_change)
		better = finding->by_change = changed || finding->by_change;
	if (!better && changed == finding->in_change)
		better = finding->hint &&
			 distance(line, finding->hint) < distance(finding->first, finding->hint);
	if (!better)
		return;
	finding->first = line;
	finding->in_change = changed;
}

/* Every line that has the quote's first one in it is tried once. */
static void search(struct code *code, struct finding *finding, const struct quote *quote,
		   bool whole)
{
	const struct code_file *file = finding->file;
	struct rlmd_text text = file->text, first = quote->lines[0];
	const char *found;
	size_t at = 0;

	while (at < text.size &&
	       (found = memmem(text.bytes + at, text.size - at, first.bytes, first.size))) {
		size_t line = code_line_of(file, (size_t)(found - text.bytes));

		code->work++;
		if (line + quote->count - 1 > file->lines)
			return;
		if (whole ? matches_whole(file, line, quote) : matches_part(file, line, quote))
			note(finding, line, quote->count);
		at = file->starts[line];
	}
}

static bool find_in(struct code *code, const struct code_file *file, const struct quote *quote,
		    struct finding *finding)
{
	finding->file = file;
	finding->occurrences = 0;
	finding->in_change = finding->by_change = false;
	finding->anchoring = code->work > CODE_WORK_MAX ? FINDING_NOT_TRIED : FINDING_NO_QUOTE;
	if (!quote->count || finding->anchoring == FINDING_NOT_TRIED)
		return false;
	code->work += file->text.size / BYTES_OF_A_LINE;
	search(code, finding, quote, true);
	if (!finding->occurrences)
		search(code, finding, quote, false);
	if (!finding->occurrences)
		return false;
	finding->anchoring = FINDING_ANCHORED;
	finding->last = finding->first + quote->count - 1;
	return true;
}

/* --- a path that is written otherwise ------------------------------------------------------- */

/* "src\\x.c", "./src//x.c" -> "src/x.c"; new. */
static char *clean(const char *path)
{
	char *cleaned = xstrdup(path);
	size_t size = 0;

	for (; *path; path++) {
		char c = *path == '\\' ? '/' : *path;
		bool at_start = !size || cleaned[size - 1] == '/';

		if (at_start && (c == '/' || (c == '.' && (path[1] == '/' || path[1] == '\\'))))
			continue;
		cleaned[size++] = c;
	}
	cleaned[size] = '\0';
	return cleaned;
}

/* "x/src/a.c" has the end "src/a.c", but not "c/a.c". */
static bool is_end_of(const char *end, const char *path)
{
	size_t size = strlen(end), whole = strlen(path);

	return size <= whole && !strcmp(path + whole - size, end) &&
	       (size == whole || path[whole - size - 1] == '/');
}

/* The file whose path is the longest end of the one that was named and has the quote. */
static bool find_longest(struct code *code, const char *path, const struct quote *quote,
			 struct finding *finding)
{
	while (*path) {
		const struct code_file *file = code_find(code, text_of(path));

		if (file && find_in(code, file, quote, finding))
			return true;
		path += strcspn(path, "/");
		path += *path == '/';
	}
	return false;
}

/* The one file whose path ends as the one that was named and has the quote. */
static void find_only(struct code *code, const char *path, const struct quote *quote,
		      struct finding *finding)
{
	const struct code_file *found = NULL;

	code->work += code->count / BYTES_OF_A_LINE;
	for (size_t i = 0; i < code->count && *path; i++) {
		const struct code_file *file = &code->files[i];

		if (!is_end_of(path, file->path))
			continue;
		file = code_find(code, text_of(file->path));
		if (!find_in(code, file, quote, finding))
			continue;
		if (found) {
			found = NULL;
			break;
		}
		found = file;
	}
	if (!found || !find_in(code, found, quote, finding))
		finding->anchoring = FINDING_NO_FILE;
}

void anchor_find(struct code *code, struct finding *finding)
{
	struct quote quote = quote_of(text_of(finding->quote));
	auto_free struct rlmd_text *lines = quote.lines;
	const struct code_file *file = code_find(code, text_of(finding->path));
	auto_free char *path = NULL;

	(void)lines;
	if (file) {
		find_in(code, file, &quote, finding);
		return;
	}
	path = clean(finding->path);
	finding->anchoring = FINDING_NO_FILE;
	if (!find_longest(code, path, &quote, finding))
		find_only(code, path, &quote, finding);
	if (finding->anchoring == FINDING_NO_FILE)
		finding->file = NULL;
}

static void anchor(struct finding *finding, struct code *code, const struct ruleset *rules,
		   bool only_changed)
{
	anchor_find(code, finding);
	ruleset_apply(rules, finding);
	if (finding->anchoring != FINDING_ANCHORED)
		return;
	if (only_changed && !code_changed(finding->file, finding->first, finding->last))
		finding->omitted = OMITTED_UNCHANGED;
	free(finding->path);
	finding->path = xstrdup(finding->file->path);
}

void anchor_all(struct findings *findings, struct code *code, const struct ruleset *rules,
		bool only_changed)
{
	for (size_t i = 0; i < findings->count; i++)
		ruleset_rate(rules, &findings->items[i]);
	for (enum severity severity = SEVERITY_ERROR; severity > SEVERITY_NONE; severity--)
		for (size_t i = 0; i < findings->count; i++)
			if (findings->items[i].severity == severity)
				anchor(&findings->items[i], code, rules, only_changed);
	for (size_t i = 0; i < findings->count; i++)
		patch_check(code, &findings->items[i]);
}
