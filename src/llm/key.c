#include "llm/key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"

enum {
	KEY_MAX = 16 << 10,
	SHORTEST = 5, /* characters that are worth hiding where a server speaks of keys */
	SHORTEST_IN_ANSWER = 12,
};

static bool file_is_safe(int fd, const char *path, struct rlmd_error *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_errno(err, RLMD_ERROR_AUTH, "cannot read the key file %s", path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, RLMD_ERROR_AUTH, "the key file %s is not a regular file",
				 path);
	if (!file_is_ours(fd, path, RLMD_ERROR_AUTH, err))
		return error_context(err, "the key file");
	if (st.st_mode & 077)
		return error_set(err, RLMD_ERROR_AUTH,
				 "others may read the key file %s; run: chmod 600 %s", path, path);
	if (st.st_size > KEY_MAX)
		return error_set(err, RLMD_ERROR_AUTH, "the key file %s is too large for a key",
				 path);
	return true;
}

char *key_read_file(const char *path, struct rlmd_error *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char bytes[KEY_MAX], *key;
	struct rlmd_text trimmed;
	ssize_t size;

	if (fd < 0) {
		error_errno(err, RLMD_ERROR_AUTH, "cannot read the key file %s", path);
		return NULL;
	}
	if (!file_is_safe(fd, path, err))
		return NULL;
	size = read(fd, bytes, sizeof bytes);
	if (size < 0) {
		error_errno(err, RLMD_ERROR_AUTH, "cannot read the key file %s", path);
		return NULL;
	}
	trimmed = text_trim(text_from(bytes, (size_t)size));
	key = xstrndup(trimmed.bytes, trimmed.size);
	explicit_bzero(bytes, sizeof bytes);
	if (strlen(key) == trimmed.size && key_check(key, path, err))
		return key;
	if (strlen(key) != trimmed.size)
		error_set(err, RLMD_ERROR_AUTH, "the key in %s holds a NUL byte", path);
	key_free(key);
	return NULL;
}

char *key_from_environment(const char *const *names)
{
	for (; names && *names; names++) {
		const char *value = getenv(*names);

		if (value && *value)
			return xstrdup(value);
	}
	return NULL;
}

bool key_check(const char *key, const char *origin, struct rlmd_error *err)
{
	if (!*key)
		return error_set(err, RLMD_ERROR_AUTH, "the key in %s is empty", origin);
	for (const char *c = key; *c; c++)
		if (*c <= 0x20 || *c >= 0x7f)
			return error_set(err, RLMD_ERROR_AUTH,
					 "the key in %s holds a space or another character that no "
					 "key has",
					 origin);
	return true;
}

static const char stars[] = {'*', '*', '*'};

/* Nearly always nothing was found before, and the bytes are where they should be. */
static void move(char *to, const char *from, size_t size)
{
	if (to != from)
		memmove(to, from, size);
}

/* In place, for the stars are never longer than what they hide; returns the new length. */
static size_t redact_whole(const char *key, size_t length, char *text, size_t size)
{
	char *from = text, *to = text, *end = text + size, *found;

	while ((found = memmem(from, (size_t)(end - from), key, length))) {
		move(to, from, (size_t)(found - from));
		to += found - from;
		memcpy(to, stars, sizeof stars);
		to += sizeof stars;
		from = found + length;
	}
	move(to, from, (size_t)(end - from));
	return (size_t)(to - text) + (size_t)(end - from);
}

size_t key_redact(const char *key, char *text, size_t size)
{
	size_t length = key ? strlen(key) : 0;

	/* So short a key is a dummy for a local server, and would match ordinary words. */
	if (length < SHORTEST || !size)
		return size;
	size = redact_whole(key, length, text, size);
	for (size_t cut = length - 1; cut >= SHORTEST; cut--)
		if (cut <= size && !memcmp(text + size - cut, key, cut)) {
			memcpy(text + size - cut, stars, sizeof stars);
			return size - cut + sizeof stars;
		}
	return size;
}

struct rlmd_text key_redact_answer(const char *key, struct bytes *answer)
{
	size_t length = key ? strlen(key) : 0;

	if (length >= SHORTEST_IN_ANSWER && answer->size)
		bytes_cut(answer, redact_whole(key, length, answer->at, answer->size));
	return bytes_text(answer);
}

size_t key_redact_piece(const char *key, struct rlmd_text piece, bool whole, struct evbuffer *out)
{
	size_t length = key && strlen(key) >= SHORTEST_IN_ANSWER ? strlen(key) : 0;
	size_t kept = whole || !length ? 0 : length - 1, done = 0;
	const char *found;

	while (length && (found = memmem(piece.bytes + done, piece.size - done, key, length))) {
		buffer_add(out, piece.bytes + done, (size_t)(found - piece.bytes) - done);
		buffer_add(out, stars, sizeof stars);
		done = (size_t)(found - piece.bytes) + length;
	}
	if (piece.size > done + kept) {
		struct rlmd_text rest = text_slice(piece, done, piece.size);
		struct rlmd_text clean = text_clip(rest, rest.size - kept);

		buffer_add(out, clean.bytes, clean.size);
		done += clean.size;
	}
	return done;
}

void key_free(char *key)
{
	if (!key)
		return;
	explicit_bzero(key, strlen(key));
	free(key);
}

void key_list_add(struct key_list *keys, const char *key)
{
	for (size_t i = 0; key && i < keys->count; i++)
		if (!strcmp(keys->keys[i], key))
			return;
	if (!key)
		return;
	keys->keys = xreallocarray(keys->keys, keys->count + 1, sizeof *keys->keys);
	keys->keys[keys->count++] = xstrdup(key);
}

size_t key_list_redact(const struct key_list *keys, char *text, size_t size)
{
	for (size_t i = 0; i < keys->count; i++)
		size = key_redact(keys->keys[i], text, size);
	return size;
}

size_t key_list_longest(const struct key_list *keys)
{
	size_t longest = 0;

	for (size_t i = 0; i < keys->count; i++)
		if (strlen(keys->keys[i]) > longest)
			longest = strlen(keys->keys[i]);
	return longest;
}

size_t key_list_redact_inside(const struct key_list *keys, char *text, size_t size)
{
	for (size_t i = 0; i < keys->count; i++)
		if (strlen(keys->keys[i]) >= SHORTEST)
			size = redact_whole(keys->keys[i], strlen(keys->keys[i]), text, size);
	return size;
}

void key_list_done(struct key_list *keys)
{
	for (size_t i = 0; i < keys->count; i++)
		key_free(keys->keys[i]);
	free(keys->keys);
	*keys = (struct key_list){0};
}
