#include "base/json_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_view.h"

enum { PAIRS_MAX = 16 }; /* so many are compared each with each, more are sorted */

void json_keys_init(struct json_keys *keys)
{
	keys->count = 0;
	keys->room = JSON_KEYS_FEW;
	keys->all = keys->few;
}

void json_keys_done(struct json_keys *keys)
{
	if (keys->all != keys->few)
		free(keys->all);
}

void json_keys_add(struct json_keys *keys, struct rlmd_text key)
{
	if (keys->count == keys->room) {
		struct rlmd_text *owned = keys->all == keys->few ? NULL : keys->all;

		keys->room *= 2;
		keys->all = xreallocarray(owned, keys->room, sizeof *keys->all);
		if (!owned)
			memcpy(keys->all, keys->few, sizeof keys->few);
	}
	keys->all[keys->count++] = key;
}

static int compare(struct rlmd_text a, struct rlmd_text b)
{
	size_t shorter = a.size < b.size ? a.size : b.size;
	int order = shorter ? memcmp(a.bytes, b.bytes, shorter) : 0;

	return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int by_bytes(const void *a, const void *b)
{
	return compare(*(const struct rlmd_text *)a, *(const struct rlmd_text *)b);
}

static bool sort_and_compare(struct rlmd_text *keys, size_t count)
{
	bool twice = false;

	qsort(keys, count, sizeof *keys, by_bytes);
	for (size_t i = 1; i < count && !twice; i++)
		twice = !compare(keys[i - 1], keys[i]);
	return twice;
}

static bool compare_all(const struct rlmd_text *keys, size_t count)
{
	for (size_t i = 1; i < count; i++)
		for (size_t j = 0; j < i; j++)
			if (keys[i].size == keys[j].size &&
			    !memcmp(keys[i].bytes, keys[j].bytes, keys[i].size))
				return true;
	return false;
}

static struct json_view view_of_key(struct rlmd_text key)
{
	bool escaped = key.size && memchr(key.bytes, '\\', key.size);

	return (struct json_view){JSON_VIEW_STRING, escaped, key};
}

/* Two ways to write one key make it twice, too: so those with escapes are compared without them. */
static bool compare_unescaped(struct rlmd_text *keys, size_t count)
{
	size_t room = 1, used = 0;
	bool twice;
	char *bytes;

	for (size_t i = 0; i < count; i++)
		room += keys[i].size;
	bytes = xcalloc(room, 1);
	for (size_t i = 0; i < count; i++) {
		struct json_view view = view_of_key(keys[i]);

		keys[i] = text_from(bytes + used, json_view_copy(&view, bytes + used));
		used += keys[i].size;
	}
	twice = sort_and_compare(keys, count);
	free(bytes);
	return twice;
}

bool json_keys_close(struct json_keys *keys, size_t count, bool escaped)
{
	struct rlmd_text *own = keys->all + count;
	size_t own_count = keys->count - count;

	keys->count = count;
	if (escaped)
		return compare_unescaped(own, own_count);
	if (own_count > PAIRS_MAX)
		return sort_and_compare(own, own_count);
	return compare_all(own, own_count);
}
