#include "batch/id_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/digest.h"

enum { FIRST_ROOM = 1024 }; /* a power of two, as all that follow */

struct id_entry {
	uint64_t key[2]; /* both zero: free */
	uint64_t number;
};

struct id_map {
	struct id_entry *entries; /* owned */
	size_t room, count;
};

struct id_map *id_map_new(void)
{
	struct id_map *map = xcalloc(1, sizeof *map);

	map->room = FIRST_ROOM;
	map->entries = xcalloc(map->room, sizeof *map->entries);
	return map;
}

void id_map_free(struct id_map *map)
{
	if (!map)
		return;
	free(map->entries);
	free(map);
}

/* Where the key is, or would be. */
static struct id_entry *entry_of(const struct id_map *map, const uint64_t key[static 2])
{
	size_t at = key[0] & (map->room - 1);

	for (;;) {
		struct id_entry *entry = &map->entries[at];

		if ((entry->key[0] == key[0] && entry->key[1] == key[1]) ||
		    (!entry->key[0] && !entry->key[1]))
			return entry;
		at = (at + 1) & (map->room - 1);
	}
}

static void make_key(const char *custom_id, uint64_t ret[static 2])
{
	unsigned char bytes[DIGEST_BYTES];

	digest_bytes(text_of(custom_id), bytes);
	memcpy(ret, bytes, 2 * sizeof *ret);
	ret[1] |= 1; /* never that of a free place */
}

static void grow(struct id_map *map)
{
	struct id_map larger = {.room = 2 * map->room, .count = map->count};

	larger.entries = xcalloc(larger.room, sizeof *larger.entries);
	for (size_t i = 0; i < map->room; i++)
		if (map->entries[i].key[1])
			*entry_of(&larger, map->entries[i].key) = map->entries[i];
	free(map->entries);
	*map = larger;
}

uint64_t *id_map_find(const struct id_map *map, const char *custom_id)
{
	struct id_entry *entry;
	uint64_t key[2];

	make_key(custom_id, key);
	entry = entry_of(map, key);
	return entry->key[1] ? &entry->number : NULL;
}

uint64_t *id_map_add(struct id_map *map, const char *custom_id, bool *ret_new)
{
	struct id_entry *entry;
	uint64_t key[2];
	bool is_new;

	if (4 * map->count >= 3 * map->room)
		grow(map);
	make_key(custom_id, key);
	entry = entry_of(map, key);
	is_new = !entry->key[1];
	if (is_new) {
		*entry = (struct id_entry){.key = {key[0], key[1]}};
		map->count++;
	}
	if (ret_new)
		*ret_new = is_new;
	return &entry->number;
}

size_t id_map_count(const struct id_map *map)
{
	return map->count;
}
