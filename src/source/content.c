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
	struct file_content content = {.fd = fd};
	struct stat st;

	if (fstat(fd, &st))
		return content;
	content.regular = S_ISREG(st.st_mode);
	content.size = st.st_size;
	content.id = (struct file_id){st.st_dev, st.st_ino};
	return content;
}

struct file_content content_of_text(struct rlmd_text text)
{
	return (struct file_content){.fd = -1, .whole = text};
}

bool content_waits(const struct file_content *content)
{
	return content->fd >= 0 && !content->regular &&
	       wait_for(content->fd, POLLIN, 0, INT_MAX) == WAIT_LATE;
}

static ssize_t copy_out(const struct file_content *content, char *to, size_t size)
{
	size_t left = content->whole.size - content->taken;

	if (size > left)
		size = left;
	if (size)
		memcpy(to, content->whole.bytes + content->taken, size);
	return (ssize_t)size;
}

ssize_t content_take(struct file_content *content, char *to, size_t size)
{
	ssize_t got = content->fd >= 0 ? read(content->fd, to, size) : copy_out(content, to, size);

	if (got > 0)
		content->taken += (size_t)got;
	return got;
}

/* A kernel's own file may say that it is empty, and have much. */
bool content_ends(const struct file_content *content)
{
	return content->regular && content->size > 0 && content->taken >= (size_t)content->size;
}

bool content_is_larger(const struct file_content *content, int64_t size)
{
	return content->fd >= 0 && content->size > size;
}

bool content_is_one_of(const struct file_content *content, const struct file_id *ids, size_t count)
{
	for (size_t i = 0; content->fd >= 0 && i < count; i++)
		if (ids[i].device == content->id.device && ids[i].number == content->id.number)
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
