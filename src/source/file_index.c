/*
 * The memory file, in the machine's order, as worker/source.py reads it:
 *
 *   struct head
 *   struct record   one for each file, in the order of their texts
 *   uint32_t        the numbers of the records in the order of their paths, byte by byte
 *   bytes           the paths, a NUL behind each
 *   bytes           the JSON of what was changed
 */
#include "source/file_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"

struct head {
	uint64_t count, paths, changes; /* records; bytes of the two */
};

struct record {
	uint64_t first_character, characters, first_byte, bytes, path, path_size, tokens, invalid,
		highest, status;
};

struct file_index {
	int references;
	struct record *records; /* owned before the seal; then lent by the file */
	size_t count;
	char *paths; /* likewise */
	size_t paths_size, paths_room;
	char *changes; /* owned, before the seal */
	size_t changes_size;
	struct memfile *file; /* owned: from the seal on */
};

struct file_index *file_index_new(void)
{
	struct file_index *index = xcalloc(1, sizeof *index);

	index->references = 1;
	return index;
}

struct file_index *file_index_ref(struct file_index *index)
{
	if (index)
		index->references++;
	return index;
}

static void free_parts(struct file_index *index)
{
	free(take_pointer(&index->records));
	free(take_pointer(&index->paths));
	free(take_pointer(&index->changes));
}

void file_index_unref(struct file_index *index)
{
	if (!index || --index->references)
		return;
	if (index->file)
		memfile_unref(index->file);
	else
		free_parts(index);
	free(index);
}

/* Of a record; 0: there was no comparison. */
static const char *const statuses[] = {NULL, "added", "modified", "deleted", "untracked"};

enum { STATUSES = sizeof statuses / sizeof *statuses };

static size_t status_number(const char *status)
{
	size_t number = 0;

	if (!status)
		return 0;
	while (++number < STATUSES)
		if (!strcmp(statuses[number], status))
			return number;
	abort();
}

void file_index_put(struct file_index *index, const struct file_entry *entry)
{
	size_t size = entry->path.size;

	assert(!index->file);
	index->records = array_grow(index->records, index->count, sizeof *index->records);
	index->records[index->count++] = (struct record){
		.first_character = entry->first_character,
		.characters = entry->characters,
		.first_byte = entry->first_byte,
		.bytes = entry->bytes,
		.path = index->paths_size,
		.path_size = size,
		.tokens = (uint64_t)entry->tokens,
		.invalid = entry->invalid,
		.highest = entry->highest,
		.status = status_number(entry->status),
	};
	if (index->paths_size + size >= index->paths_room) {
		index->paths_room = 2 * (index->paths_size + size + 1);
		index->paths = xreallocarray(index->paths, index->paths_room, 1);
	}
	memcpy(index->paths + index->paths_size, entry->path.bytes, size);
	index->paths[index->paths_size + size] = '\0';
	index->paths_size += size + 1;
}

void file_index_add(struct file_index *index, const char *path, size_t first_byte,
		    size_t first_character, const struct text_scan *scan, const char *status)
{
	struct file_entry entry = {
		.path = text_of(path),
		.first_byte = first_byte,
		.bytes = scan->bytes,
		.first_character = first_character,
		.characters = scan->characters,
		.invalid = scan->invalid,
		.highest = scan->highest,
		.tokens = text_scan_tokens(scan),
		.status = status,
	};

	file_index_put(index, &entry);
}

void file_index_set_changes(struct file_index *index, struct rlmd_text json)
{
	assert(!index->file && !index->changes);
	index->changes = text_copy(json);
	index->changes_size = json.size;
}

static struct rlmd_text path_of(const struct file_index *index, const struct record *record)
{
	return text_from(index->paths + record->path, record->path_size);
}

static int compare_texts(struct rlmd_text a, struct rlmd_text b)
{
	size_t size = a.size < b.size ? a.size : b.size;
	int order = size ? memcmp(a.bytes, b.bytes, size) : 0;

	return order ? order : (a.size > b.size) - (a.size < b.size);
}

struct named {
	struct rlmd_text path;
	uint32_t number;
};

/* Of the same path the later one comes later. */
static int compare_named(const void *a, const void *b)
{
	const struct named *one = a, *other = b;
	int order = compare_texts(one->path, other->path);

	return order ? order : (one->number > other->number) - (one->number < other->number);
}

/* Those of one source mostly come in their order. */
static struct named *sort(const struct file_index *index)
{
	struct named *named = xcalloc(index->count + 1, sizeof *named);
	bool sorted = true;

	for (size_t i = 0; i < index->count; i++) {
		named[i] = (struct named){path_of(index, &index->records[i]), (uint32_t)i};
		sorted = sorted && (!i || compare_named(&named[i - 1], &named[i]) < 0);
	}
	if (!sorted)
		qsort(named, index->count, sizeof *named, compare_named);
	return named;
}

/* Drops files that a later one of the same path hides; `named` and the records are fewer then. */
static void drop_hidden(struct file_index *index, struct named *named)
{
	auto_free uint32_t *moved = xcalloc(index->count + 1, sizeof *moved);
	size_t kept = 0, left = 0, i;

	for (i = 0; i < index->count; i++)
		if (i + 1 < index->count && !compare_texts(named[i].path, named[i + 1].path))
			moved[named[i].number] = UINT32_MAX;
		else
			named[kept++] = named[i];
	for (i = 0; i < index->count; i++)
		if (moved[i] != UINT32_MAX) {
			index->records[left] = index->records[i];
			moved[i] = (uint32_t)left++;
		}
	for (i = 0; i < kept; i++)
		named[i].number = moved[named[i].number];
	index->count = kept;
}

/* It is no text whose characters anybody counts. */
static bool write_parts(const struct file_index *index, const struct named *named,
			struct memfile *file, struct rlmd_error *err)
{
	struct head head = {index->count, index->paths_size, index->changes_size};
	auto_free uint32_t *sorted = xcalloc(index->count + 1, sizeof *sorted);
	const struct rlmd_text parts[] = {
		text_from(&head, sizeof head),
		text_from(index->records, index->count * sizeof *index->records),
		text_from(sorted, index->count * sizeof *sorted),
		text_from(index->paths, index->paths_size),
		text_from(index->changes, index->changes_size),
	};

	for (size_t i = 0; i < index->count; i++)
		sorted[i] = named[i].number;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		if (!memfile_append_uncounted(file, parts[i], err))
			return false;
		memfile_count(file, &(struct text_scan){.bytes = parts[i].size});
	}
	return memfile_seal(file, err);
}

bool file_index_seal(struct file_index *index, struct rlmd_error *err)
{
	struct memfile *file = memfile_new("rlmd-files");
	auto_free struct named *named = sort(index);
	struct rlmd_text all;

	drop_hidden(index, named);
	if (!write_parts(index, named, file, err)) {
		memfile_unref(file);
		return false;
	}
	all = memfile_text(file);
	if (!all.bytes) {
		memfile_unref(file);
		return error_set(err, RLMD_ERROR_INPUT, "no memory for the list of %zu files",
				 index->count);
	}
	free_parts(index);
	index->file = file;
	index->records = (struct record *)(uintptr_t)(all.bytes + sizeof(struct head));
	index->paths = (char *)(uintptr_t)(index->records + index->count) +
		       index->count * sizeof(uint32_t); /* behind the numbers by path */
	return true;
}

size_t file_index_count(const struct file_index *index)
{
	return index ? index->count : 0;
}

struct file_entry file_index_get(const struct file_index *index, size_t number)
{
	const struct record *record = &index->records[number];

	assert(index->file && number < index->count);
	return (struct file_entry){
		.path = path_of(index, record),
		.first_byte = record->first_byte,
		.bytes = record->bytes,
		.first_character = record->first_character,
		.characters = record->characters,
		.invalid = record->invalid,
		.highest = (uint32_t)record->highest,
		.tokens = (int64_t)record->tokens,
		.status = statuses[record->status],
	};
}

struct rlmd_text file_index_changes(const struct file_index *index)
{
	return text_from(index->paths + index->paths_size, index->changes_size);
}

struct memfile *file_index_file(const struct file_index *index)
{
	return index->file;
}

size_t file_index_header(size_t path_size)
{
	return strlen("===== ") + path_size + strlen(" =====\n");
}

char *file_index_key(const char *name)
{
	size_t room = strlen(name) * 6 + 1; /* the longest escape of a byte or character */
	auto_free char *doubled = xcalloc(strlen(name) * 2 + 1, 1);
	char *safe = xcalloc(room, 1), *out = doubled;

	for (; *name; name++) {
		*out++ = *name;
		if (*name == '\\')
			*out++ = '\\';
	}
	text_escape(text_of(doubled), safe, room);
	return safe;
}
