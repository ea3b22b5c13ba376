#include "source/subset.h"

#include "base/cleanup.h"

/* Files that stand one after the other, from the header of the first one on. */
struct stretch {
	size_t start, end;              /* bytes of the whole */
	size_t first_character, behind; /* likewise */
};

struct subset {
	const struct context_input *whole;
	struct file_index *files; /* owned */
	struct memfile *copy;     /* owned: of several stretches; NULL: there is one so far */
	struct stretch stretch;   /* under way */
	size_t bytes, characters; /* of all before it, as they are put together */
	struct text_scan scan;    /* of one that is a slice: what is known without looking */
	int64_t tokens;
	bool any;
};

/* Without its header, which is ours, but for the path. */
static void begin_stretch(struct subset *subset, const struct file_entry *entry)
{
	struct text_scan path = {0};

	text_scan_feed(&path, entry->path);
	text_scan_end(&path);
	subset->stretch.start = entry->first_byte - file_index_header(entry->path.size);
	subset->stretch.first_character = entry->first_character -
					  file_index_header(path.characters);
}

/* A header is of ASCII, but for its path. */
static uint32_t highest_of(const struct file_entry *entry)
{
	struct text_scan path = {0};

	text_scan_feed(&path, entry->path);
	return path.highest > entry->highest ? path.highest : entry->highest;
}

/* Ends the last line of a text that was put together. */
static bool end_stretch(struct subset *subset, struct rlmd_error *err)
{
	struct rlmd_text all = memfile_text(subset->whole->file);
	struct stretch *stretch = &subset->stretch;
	size_t size = stretch->end - stretch->start;
	bool open = size && all.bytes && all.bytes[stretch->end - 1] != '\n';

	if (!all.bytes)
		return error_set(err, RLMD_ERROR_INPUT, "no memory for a part of an input");
	if (subset->bytes + size > SUBSET_COPY_MAX)
		return error_set(err, RLMD_ERROR_INPUT,
				 "files that do not stand together may be %d MiB of a subset; take "
				 "whole folders, or several subsets",
				 SUBSET_COPY_MAX >> 20);
	if (!subset->copy)
		subset->copy = memfile_new("rlmd-context");
	subset->bytes += size + open;
	subset->characters += stretch->behind - stretch->first_character + open;
	return memfile_append(subset->copy, text_slice(all, stretch->start, stretch->end), err) &&
	       (!open || memfile_append(subset->copy, text_of("\n"), err));
}

static bool add_file(struct subset *subset, size_t number, struct rlmd_error *err)
{
	struct file_entry entry = file_index_get(subset->whole->files, number);
	struct stretch *stretch = &subset->stretch;
	size_t header = entry.first_byte - file_index_header(entry.path.size);

	/* A line feed that belongs to no file may stand between two. */
	if (subset->any && header > stretch->end + 1 && !end_stretch(subset, err))
		return false;
	if (!subset->any || header > stretch->end + 1)
		begin_stretch(subset, &entry);
	subset->any = true;
	stretch->end = entry.first_byte + entry.bytes;
	stretch->behind = entry.first_character + entry.characters;
	subset->scan.invalid += entry.invalid;
	subset->tokens += entry.tokens;
	if (highest_of(&entry) > subset->scan.highest)
		subset->scan.highest = highest_of(&entry);
	entry.first_byte = entry.first_byte - stretch->start + subset->bytes;
	entry.first_character = entry.first_character - stretch->first_character +
				subset->characters;
	file_index_put(subset->files, &entry);
	return true;
}

/* Of a slice nobody looks at the bytes: it is made of tokens as the whole is. */
static struct memfile *slice(struct subset *subset)
{
	const struct text_scan *whole = memfile_scan(subset->whole->file);
	const struct stretch *stretch = &subset->stretch;
	int64_t tokens = text_scan_tokens(whole);

	subset->scan.bytes = stretch->end - stretch->start;
	subset->scan.characters = stretch->behind - stretch->first_character;
	for (size_t i = 0; tokens && i < TOKEN_CLASSES; i++)
		subset->scan.tokens.counts.of[i] = (int64_t)((double)whole->tokens.counts.of[i] *
							     (double)subset->tokens /
							     (double)tokens);
	return memfile_slice(subset->whole->file, stretch->start, &subset->scan);
}

static bool add_files(struct subset *subset, const size_t *ranges, size_t count,
		      struct rlmd_error *err)
{
	size_t most = file_index_count(subset->whole->files);

	for (size_t i = 0; i < count; i++) {
		size_t first = ranges[2 * i], many = ranges[2 * i + 1];

		if (first >= most || many > most - first)
			return error_set(err, RLMD_ERROR_INPUT,
					 "a part of an input that has no such files");
		for (size_t number = first; number < first + many; number++)
			if (!add_file(subset, number, err))
				return false;
	}
	return !subset->copy || (end_stretch(subset, err) && memfile_seal(subset->copy, err));
}

bool subset_make(const struct context_input *whole, const size_t *ranges, size_t count,
		 struct memfile **ret_file, struct file_index **ret_index, struct rlmd_error *err)
{
	struct subset subset = {.whole = whole, .files = file_index_new()};
	struct rlmd_text changes = file_index_changes(whole->files);
	bool made = add_files(&subset, ranges, count, err);

	if (made && changes.size)
		file_index_set_changes(subset.files, changes);
	if (!made || !file_index_seal(subset.files, err)) {
		memfile_unref(subset.copy);
		file_index_unref(subset.files);
		return false;
	}
	*ret_file = subset.copy ? subset.copy : slice(&subset);
	*ret_index = subset.files;
	return true;
}
