#include "llm/told.h"

#include <event2/buffer.h>
#include <openssl/evp.h>
#include <stdio.h>
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

/* A name as an exchange's, so that no script is looked for in it. */
static char *next_name(struct told *told, struct rlmd_text asked)
{
	unsigned char hash[EVP_MAX_MD_SIZE];
	char id[EXCHANGE_ID_SIZE];
	unsigned int size = 0;
	int64_t before;

	if (!EVP_Digest(asked.bytes, asked.size, hash, &size, EVP_sha256(), NULL))
		abort();
	for (unsigned int i = 0; i < size; i++)
		snprintf(id + 2 * i, 3, "%02x", hash[i]);
	before = json_get_integer(told->seen, id, 0);
	json_object_set_new_nocheck(told->seen, id, json_integer(before + 1));
	return xasprintf("%s-%lld.json", id, (long long)before);
}

static char *find(const struct told *told, const char *name, size_t *size)
{
	auto_free char *path = xasprintf("%s/%s", told->replay, name);
	size_t read = 0;
	auto_free char *bytes = file_read(path, FILE_SIZE_MAX, &read, NULL);
	json_auto_t *kept = bytes ? json_read(text_from(bytes, read), DEPTH_MAX, NULL) : NULL;
	const json_t *words = json_object_get(kept, "told");

	if (!json_is_string(words))
		return NULL;
	*size = json_text(words).size;
	return text_copy(json_text(words));
}

static void keep(const struct told *told, const char *name, struct rlmd_text words)
{
	auto_free char *path = xasprintf("%s/%s", told->record, name);
	auto_evbuffer struct evbuffer *bytes = evbuffer_new();
	json_auto_t *kept = json_pack("{s:o}", "told", json_from_text(words));
	size_t size;
	char *start;

	json_write_line(kept, bytes);
	size = evbuffer_get_length(bytes);
	start = (char *)evbuffer_pullup(bytes, -1);
	size = keys_redact(told->keys, start, size);
	file_write(path, text_from(start, size), NULL);
}

char *told_again(struct told *told, struct rlmd_text asked, char *words, size_t *size)
{
	auto_free char *name = NULL;
	char *before;

	if (!told->replay && !told->record)
		return words;
	name = next_name(told, asked);
	before = told->replay ? find(told, name, size) : NULL;
	if (before) {
		free(words);
		words = before;
	}
	if (told->record)
		keep(told, name, text_from(words, *size));
	return words;
}
