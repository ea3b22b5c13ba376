#include "llm/told.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "llm/exchange.h"
#include "llm/key.h"

enum { FILE_SIZE_MAX = 256 << 20, DEPTH_MAX = 4 };

struct told {
	char *replay, *record;   /* owned; NULL: off */
	const struct keys *keys; /* lent */
	json_t *seen;            /* owned: id -> how often it was asked */
};

struct told *told_new(const char *replay_dir, const char *record_dir, const struct keys *keys)
{
	struct told *told = xcalloc(1, sizeof *told);

	told->replay = replay_dir ? xstrdup(replay_dir) : NULL;
	told->record = record_dir ? xstrdup(record_dir) : NULL;
	told->keys = keys;
	told->seen = json_object();
	return told;
}

void told_free(struct told *told)
{
	if (!told)
		return;
	free(told->replay);
	free(told->record);
	json_decref(told->seen);
	free(told);
}

void told_name(struct told *told, struct rlmd_text asked, struct llm_told *ret)
{
	exchange_hash(asked, ret->id);
	ret->number = json_count(told->seen, ret->id);
}

/* As an exchange's, so that no script is looked for in it. */
static char *path_in(const char *dir, const struct llm_told *name)
{
	return xasprintf("%s/%s-%lld.json", dir, name->id, (long long)name->number);
}

char *told_read(const json_t *kept, size_t *ret_size)
{
	const json_t *words = json_object_get(kept, "told");

	if (!json_is_string(words))
		return NULL;
	*ret_size = json_text(words).size;
	return text_copy(json_text(words));
}

json_t *told_write(struct rlmd_text words)
{
	return json_pack("{s:o}", "told", json_from_text(words));
}

char *told_find(const struct told *told, const struct llm_told *name, size_t *ret_size)
{
	auto_free char *path = told->replay ? path_in(told->replay, name) : NULL;
	size_t read = 0;
	auto_free char *bytes = path ? file_read(path, FILE_SIZE_MAX, &read, NULL) : NULL;
	json_auto_t *kept = bytes ? json_read(text_from(bytes, read), DEPTH_MAX, NULL) : NULL;

	return told_read(kept, ret_size);
}

void told_keep(const struct told *told, const struct llm_told *name, struct rlmd_text words)
{
	auto_free char *path = told->record ? path_in(told->record, name) : NULL;
	auto_evbuffer struct evbuffer *bytes = evbuffer_new();
	json_auto_t *kept = told_write(words);
	size_t size;
	char *start;

	if (!path)
		return;
	json_write_line(kept, bytes);
	size = evbuffer_get_length(bytes);
	start = (char *)evbuffer_pullup(bytes, -1);
	size = keys_redact(told->keys, start, size);
	file_write(path, text_from(start, size), NULL);
}
