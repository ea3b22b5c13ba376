#include "llm/key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"

enum {
	KEY_MAX = 16 << 10,
	SHORTEST = 5, /* characters that are worth hiding */
};

static bool file_is_safe(int fd, const char *path, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_errno(err, ERROR_AUTH, "cannot read the key file %s", path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, ERROR_AUTH, "the key file %s is not a regular file", path);
	if (!file_is_ours(fd, path, ERROR_AUTH, err))
		return error_context(err, "the key file");
	if (st.st_mode & 077)
		return error_set(err, ERROR_AUTH,
				 "others may read the key file %s; run: chmod 600 %s", path, path);
	if (st.st_size > KEY_MAX)
		return error_set(err, ERROR_AUTH, "the key file %s is too large for a key", path);
	return true;
}

char *key_read_file(const char *path, struct error *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char bytes[KEY_MAX], *key;
	struct text trimmed;
	ssize_t size;

	if (fd < 0) {
		error_errno(err, ERROR_AUTH, "cannot read the key file %s", path);
		return NULL;
	}
	if (!file_is_safe(fd, path, err))
		return NULL;
	size = read(fd, bytes, sizeof bytes);
	if (size < 0) {
		error_errno(err, ERROR_AUTH, "cannot read the key file %s", path);
		return NULL;
	}
	trimmed = text_trim(text_from(bytes, (size_t)size));
	key = xstrndup(trimmed.bytes, trimmed.size);
	explicit_bzero(bytes, sizeof bytes);
	if (strlen(key) == trimmed.size && key_check(key, path, err))
		return key;
	if (strlen(key) != trimmed.size)
		error_set(err, ERROR_AUTH, "the key in %s holds a NUL byte", path);
	key_free(key);
	return NULL;
}

char *key_take_environment(const char *const *names)
{
	char *key = NULL;

	for (; *names; names++) {
		char *value = getenv(*names);

		if (!value)
			continue;
		if (!key && *value)
			key = xstrdup(value);
		explicit_bzero(value, strlen(value));
		unsetenv(*names);
	}
	return key;
}

bool key_check(const char *key, const char *origin, struct error *err)
{
	if (!*key)
		return error_set(err, ERROR_AUTH, "the key in %s is empty", origin);
	for (const char *c = key; *c; c++)
		if (*c <= 0x20 || *c >= 0x7f)
			return error_set(err, ERROR_AUTH,
					 "the key in %s holds a space or another character that no "
					 "key has",
					 origin);
	return true;
}

size_t key_redact(const char *key, char *text, size_t size)
{
	static const char stars[] = {'*', '*', '*'};
	size_t length = key ? strlen(key) : 0, kept = 0;

	/* What is so short is a dummy for a local server, and would match ordinary words. */
	if (length < SHORTEST)
		return size;
	for (size_t i = 0; i < size;) {
		size_t left = size - i < length ? size - i : length;

		if (left >= SHORTEST && !memcmp(text + i, key, left)) {
			memcpy(text + kept, stars, sizeof stars);
			kept += sizeof stars;
			i += left;
		} else {
			text[kept++] = text[i++];
		}
	}
	return kept;
}

void key_free(char *key)
{
	if (!key)
		return;
	explicit_bzero(key, strlen(key));
	free(key);
}
