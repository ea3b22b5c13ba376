#include "review/code.h"

#include <jansson.h>
#include <rlmd/context.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/json.h"

enum { CHANGES_DEPTH_MAX = 8 };

static char *name_of(const struct code *code, const char *path)
{
	return xasprintf("%s%s", code->prefix ? code->prefix : "", path);
}

void code_add(struct code *code, struct rlmd_text path, struct rlmd_text text)
{
	code->files = array_grow(code->files, code->count, sizeof *code->files);
	code->files[code->count] = (struct code_file){
		.path = text_copy(path), .text = text, .rank = code->count};
	code->files[code->count].name = name_of(code, code->files[code->count].path);
	code->count++;
}

static void file_done(struct code_file *file)
{
	free(file->path);
	free(file->name);
	free(file->repaired);
	free(file->starts);
	free(file->changes);
	free(file->prints.items);
}

static int compare(const void *left, const void *right)
{
	const struct code_file *a = left, *b = right;
	int by = strcmp(a->path, b->path);

	return by ? by : (a->rank > b->rank) - (a->rank < b->rank);
}

void code_seal(struct code *code)
{
	size_t kept = 0;

	if (code->count)
		qsort(code->files, code->count, sizeof *code->files, compare);
	for (size_t i = 0; i < code->count; i++) {
		if (i + 1 < code->count && !strcmp(code->files[i].path, code->files[i + 1].path))
			file_done(&code->files[i]);
		else
			code->files[kept++] = code->files[i];
	}
	code->count = kept;
}

static struct code_file *search(struct code *code, const char *path)
{
	size_t low = 0, high = code->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int by = strcmp(code->files[middle].path, path);

		if (!by)
			return &code->files[middle];
		if (by < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* --- lines ---------------------------------------------------------------------------- */

static void repair(struct code_file *file)
{
	auto_evbuffer struct evbuffer *repaired = NULL;
	size_t size;

	if (text_is_utf8(file->text))
		return;
	repaired = buffer_new();
	text_repair(file->text, repaired);
	file->repaired = text_drain(repaired, &size);
	file->text = text_from(file->repaired, size);
}

static void count_lines(struct code_file *file)
{
	size_t lines = 0;

	for (size_t at = 0; at < file->text.size; at = text_line_end(file->text, at))
		lines++;
	file->starts = xcalloc(lines + 1, sizeof *file->starts);
	for (size_t at = 0; at < file->text.size; at = text_line_end(file->text, at))
		file->starts[file->lines++] = at;
	file->starts[file->lines] = file->text.size;
}

const struct code_file *code_find(struct code *code, struct rlmd_text path)
{
	auto_free char *name = text_copy(path);
	struct code_file *file = search(code, name);

	if (!file && !strncmp(name, "./", 2))
		file = search(code, name + 2);
	if (!file && code->prefix && !strncmp(name, code->prefix, strlen(code->prefix)))
		file = search(code, name + strlen(code->prefix));
	if (file && !file->starts) {
		repair(file);
		count_lines(file);
	}
	return file;
}

struct rlmd_text code_line(const struct code_file *file, size_t number)
{
	return text_slice(file->text, file->starts[number - 1], file->starts[number]);
}

struct rlmd_text code_line_trimmed(const struct code_file *file, size_t number)
{
	struct rlmd_text line = code_line(file, number);

	if (number == 1 && text_starts(line, "\xef\xbb\xbf"))
		line = text_slice(line, 3, line.size);
	return text_trim(line);
}

size_t code_line_of(const struct code_file *file, size_t byte)
{
	size_t low = 0, high = file->lines;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (file->starts[middle] <= byte)
			low = middle;
		else
			high = middle;
	}
	return low + 1;
}

/* --- prints --------------------------------------------------------------------------- */

static bool is_of_word(char c)
{
	unsigned char byte = (unsigned char)c;

	return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
	       (byte >= 'A' && byte <= 'Z') || byte == '_' || byte >= 0x80;
}

/* SHA-256, for a stranger may write lines. False: it has no word. */
static bool print_line(struct rlmd_text line, char *room, struct code_print *ret)
{
	unsigned char digest[DIGEST_BYTES];
	size_t words = 0;

	ret->size = 0;
	ret->digest = 0;
	for (size_t i = 0; i < line.size; i++) {
		if (text_is_space(line.bytes[i]))
			continue;
		room[ret->size++] = line.bytes[i];
		words += is_of_word(line.bytes[i]);
	}
	if (words < 2)
		return false;
	digest_bytes(text_from(room, ret->size), digest);
	for (size_t i = 0; i < sizeof ret->digest; i++)
		ret->digest = ret->digest << 8 | digest[i];
	return true;
}

const struct code_prints *code_prints(struct code *code, const struct code_file *file)
{
	struct code_prints *prints = &code->files[file - code->files].prints;
	auto_free char *room = NULL;

	if (prints->items)
		return prints;
	room = xcalloc(file->text.size + 1, 1);
	prints->items = xcalloc(file->lines + 1, sizeof *prints->items);
	for (size_t line = 1; line <= file->lines; line++) {
		struct code_print *print = &prints->items[prints->count];

		print->line = line;
		prints->count += print_line(code_line_trimmed(file, line), room, print);
	}
	return prints;
}

size_t code_prints_from(const struct code_prints *prints, size_t line)
{
	size_t low = 0, high = prints->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (prints->items[middle].line < line)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* --- changes -------------------------------------------------------------------------- */

static void add_change(struct code_file *file, const json_t *pair)
{
	json_int_t first = json_integer_value(json_array_get(pair, 0));
	json_int_t last = json_integer_value(json_array_get(pair, 1));

	if (first < 1 || last < first)
		return;
	file->changes = array_grow(file->changes, file->change_count, sizeof *file->changes);
	file->changes[file->change_count++] = (struct code_range){.first = (size_t)first,
								  .last = (size_t)last};
}

static void set_changes(struct code_file *file, const json_t *change)
{
	const json_t *hunk, *pair;
	size_t i, k;

	json_array_foreach (json_object_get(change, "hunks"), i, hunk)
		json_array_foreach (json_object_get(hunk, "changed"), k, pair)
			add_change(file, pair);
}

/* Deleted files need no reading. */
static void note_unread(struct code *code, const json_t *change)
{
	if (text_equal(json_get_text(change, "status"), "deleted"))
		return;
	code->unread = array_grow(code->unread, code->unread_count, sizeof *code->unread);
	code->unread[code->unread_count++] = name_of(code, json_get_string(change, "path"));
}

void code_set_changes(struct code *code, struct rlmd_text json)
{
	json_auto_t *changes = json.size ? json_read(json, CHANGES_DEPTH_MAX, NULL) : NULL;
	const json_t *change;
	size_t i;

	code->compared = code->compared || changes;
	json_array_foreach (changes, i, change) {
		struct code_file *file = search(code, json_get_string(change, "path"));

		code->changed = array_grow(code->changed, code->changed_count,
					   sizeof *code->changed);
		code->changed[code->changed_count++] = name_of(code,
							       json_get_string(change, "path"));
		if (file)
			set_changes(file, change);
		else
			note_unread(code, change);
	}
}

bool code_is_as_it_was(const struct code *code, const char *name)
{
	for (size_t i = 0; i < code->changed_count; i++)
		if (!strcmp(code->changed[i], name))
			return false;
	return code->compared;
}

bool code_changed(const struct code_file *file, size_t first, size_t last)
{
	for (size_t i = 0; i < file->change_count; i++)
		if (file->changes[i].first <= last && file->changes[i].last >= first)
			return true;
	return false;
}

/* --- a context ------------------------------------------------------------------------ */

static void load_skipped(struct code *code, const struct rlmd_context *context)
{
	for (size_t input = 0; input < rlmd_context_count(context); input++) {
		struct rlmd_context_skipped one = {.size = sizeof one};

		for (size_t i = 0; rlmd_context_get_skipped(context, input, i, &one); i++) {
			code->skipped = array_grow(code->skipped, code->skipped_count,
						   sizeof *code->skipped);
			code->skipped[code->skipped_count++] = (struct code_skipped){
				.name = name_of(code, one.path), .reason = one.reason};
		}
	}
}

void code_load(struct code *code, const struct rlmd_context *context)
{
	for (size_t input = 0; input < rlmd_context_count(context); input++) {
		struct rlmd_context_file file = {.size = sizeof file};

		for (size_t i = 0; rlmd_context_get_file(context, input, i, &file); i++)
			code_add(code, text_of(file.path), file.text);
	}
	code_seal(code);
	load_skipped(code, context);
	for (size_t input = 0; input < rlmd_context_count(context); input++)
		code_set_changes(code, rlmd_context_changes(context, input));
}

void code_done(struct code *code)
{
	for (size_t i = 0; i < code->count; i++)
		file_done(&code->files[i]);
	for (size_t i = 0; i < code->unread_count; i++)
		free(code->unread[i]);
	for (size_t i = 0; i < code->changed_count; i++)
		free(code->changed[i]);
	for (size_t i = 0; i < code->skipped_count; i++)
		free(code->skipped[i].name);
	free(code->skipped);
	free(code->changed);
	free(code->unread);
	free(code->files);
	free(code->prefix);
	*code = (struct code){0};
}
