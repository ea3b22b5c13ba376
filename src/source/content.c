#include "source/content.h"

#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/wait.h"
#include "source/secret.h"

enum { WINDOW_SIZE = 1 << 16 };

struct file_content content_of_fd(int fd)
{
	return (struct file_content){.fd = fd};
}

struct file_content content_of_text(struct rlmd_text text)
{
	return (struct file_content){.fd = -1, .whole = text};
}

bool content_waits(const struct file_content *content)
{
	return content->fd >= 0 && wait_for(content->fd, POLLIN, 0, INT_MAX) == WAIT_LATE;
}

ssize_t content_take(struct file_content *content, char *to, size_t size)
{
	size_t left = content->whole.size - content->taken;

	if (content->fd >= 0)
		return read(content->fd, to, size);
	if (size > left)
		size = left;
	if (size)
		memcpy(to, content->whole.bytes + content->taken, size);
	content->taken += size;
	return (ssize_t)size;
}

bool content_is_larger(const struct file_content *content, int64_t size)
{
	struct stat st;

	return content->fd >= 0 && !fstat(content->fd, &st) && st.st_size > size;
}

bool content_is_one_of(const struct file_content *content, const struct file_id *ids, size_t count)
{
	struct stat st;

	if (content->fd < 0 || fstat(content->fd, &st))
		return false;
	for (size_t i = 0; i < count; i++)
		if (ids[i].device == st.st_dev && ids[i].number == st.st_ino)
			return true;
	return false;
}

/* Once more read for that, where it is not in memory. Windows overlap, so that they hide none. */
bool content_search(struct file_content *content, size_t from, const char **ret_what)
{
	char window[WINDOW_SIZE];
	size_t start, got;

	if (!content->searched)
		content->searched = (off_t)(from - SECRET_SPAN);
	start = (size_t)content->searched;
	if (content->fd >= 0) {
		ssize_t size = pread(content->fd, window, sizeof window, content->searched);

		got = size > 0 ? (size_t)size : 0;
		*ret_what = secret_in_text(text_from(window, got));
	} else {
		got = content->whole.size - start;
		if (got > WINDOW_SIZE)
			got = WINDOW_SIZE;
		*ret_what = secret_in_text(text_slice(content->whole, start, start + got));
	}
	content->searched += WINDOW_SIZE - SECRET_SPAN;
	return *ret_what || got < WINDOW_SIZE;
}
