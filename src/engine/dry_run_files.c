#include "engine/dry_run_files.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/json.h"
#include "source/file_index.h"

enum { FOLDER_DEPTH = 2 };

/* "src/net/" of "src/net/http/call.c" */
static struct rlmd_text folder_of(struct rlmd_text path)
{
	size_t size = 0;
	int depth = 0;

	for (size_t i = 0; i < path.size && depth < FOLDER_DEPTH; i++)
		if (path.bytes[i] == '/') {
			size = i + 1;
			depth++;
		}
	return text_from(path.bytes, size);
}

static void add_to(json_t *object, const char *key, int64_t more)
{
	json_object_set_new(object, key, json_integer(json_get_integer(object, key, 0) + more));
}

static void count_in(json_t *folders, const struct file_entry *file)
{
	struct rlmd_text path = folder_of(file->path);
	json_t *folder = json_object_getn(folders, path.bytes, path.size);

	if (!folder) {
		folder = json_pack("{s:o, s:i, s:i, s:i}", "path", json_from_text(path), "files", 0,
				   "bytes", 0, "tokens", 0);
		json_object_setn_new_nocheck(folders, path.bytes, path.size, folder);
	}
	add_to(folder, "files", 1);
	add_to(folder, "bytes", (int64_t)file->bytes);
	add_to(folder, "tokens", file->tokens);
}

static int by_tokens(const void *left, const void *right)
{
	int64_t a = json_get_integer(*(json_t *const *)left, "tokens", 0);
	int64_t b = json_get_integer(*(json_t *const *)right, "tokens", 0);

	return a < b ? 1 : a > b ? -1 : 0;
}

/* Those that have as many stay in the order in which they came. */
static json_t *sorted(const json_t *folders)
{
	size_t count = json_object_size(folders), i = 0;
	const json_t **all = xcalloc(count + 1, sizeof *all);
	json_t *array = json_array(), *folder;
	const char *key;

	json_object_foreach ((json_t *)folders, key, folder)
		all[i++] = folder;
	qsort(all, count, sizeof *all, by_tokens);
	for (i = 0; i < count; i++)
		json_array_append(array, (json_t *)all[i]);
	free(all);
	return array;
}

void dry_run_add_files(json_t *object, const struct file_index *index)
{
	size_t count = file_index_count(index);
	json_t *files, *folders;

	if (!count)
		return;
	files = json_array();
	folders = json_object();
	for (size_t i = 0; i < count; i++) {
		struct file_entry file = file_index_get(index, i);

		json_array_append_new(files, json_pack("{s:o, s:I, s:I}", "path",
						       json_from_text(file.path), "bytes",
						       (json_int_t)file.bytes, "tokens",
						       (json_int_t)file.tokens));
		count_in(folders, &file);
	}
	json_object_set_new(object, "files", files);
	json_object_set_new(object, "folders", sorted(folders));
	json_decref(folders);
}
