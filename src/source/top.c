#include "source/top.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "source/nofollow.h"

enum { GITFILE_MAX = 64 << 10 };

/* A directory with a HEAD, objects and refs, the last two maybe in the one that it shares. */
bool top_is_repository(int fd)
{
	struct stat st;

	if (fd < 0 || fstatat(fd, "HEAD", &st, AT_SYMLINK_NOFOLLOW))
		return false;
	if (!fstatat(fd, "commondir", &st, AT_SYMLINK_NOFOLLOW))
		return true;
	return !fstatat(fd, "objects", &st, 0) && S_ISDIR(st.st_mode) &&
	       !fstatat(fd, "refs", &st, 0) && S_ISDIR(st.st_mode);
}

/* One path in a file of a line, absolute and without links, new; NULL: there is none. */
char *top_read_path(int directory, const char *name, const char *prefix, const char *base)
{
	size_t size;
	auto_free char *bytes = nofollow_read(directory, name, GITFILE_MAX, &size);
	auto_free char *path = NULL;
	struct rlmd_text text;

	if (!bytes || strlen(bytes) != size || !text_starts(text_of(bytes), prefix))
		return NULL;
	text = text_trim(text_of(bytes + strlen(prefix)));
	if (!text.size)
		return NULL;
	path = text_copy(text);
	if (*path != '/') {
		char *whole = xasprintf("%s/%s", base, path);

		free(path);
		path = whole;
	}
	return realpath(path, NULL);
}

bool top_begins_at(int directory)
{
	auto_close int git = openat(directory, ".git", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_free char *base = NULL, *path_of_git = NULL, *name = NULL;

	if (git >= 0)
		return top_is_repository(git);
	name = xasprintf("/proc/self/fd/%d", directory);
	base = realpath(name, NULL);
	path_of_git = base ? top_read_path(directory, ".git", "gitdir:", base) : NULL;
	if (path_of_git)
		git = open(path_of_git, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return top_is_repository(git);
}

bool top_has_git(const char *directory, dev_t device)
{
	auto_close int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && st.st_dev == device &&
	       !fstatat(fd, ".git", &st, AT_SYMLINK_NOFOLLOW) && top_begins_at(fd);
}

/* A file ".git", whose repository is not there: a work tree, of which nobody knows the rules. */
static bool refuse_broken(const char *top, dev_t device, struct rlmd_error *err)
{
	auto_free char *link = xasprintf("%s/.git", top);
	struct stat st;
	char safe[200];

	if (lstat(link, &st) || !S_ISREG(st.st_mode) || st.st_dev != device)
		return false;
	text_escape(text_of(link), safe, sizeof safe);
	error_set(
		err, RLMD_ERROR_INPUT,
		"%s leads to no repository, so that nobody knows which files are ignored: mend it "
		"(git worktree repair), or remove it to have all files",
		safe);
	return true;
}

/* The first directory with a repository, upwards; new, NULL: none in the same file system. */
bool top_find(const char *path, char **ret, struct rlmd_error *err)
{
	auto_free char *at = realpath(path, NULL);
	struct stat st;

	*ret = NULL;
	if (!at || stat(at, &st))
		return true;
	for (;;) {
		char *slash = strrchr(at, '/');

		if (top_has_git(at, st.st_dev)) {
			*ret = take_pointer(&at);
			return true;
		}
		if (refuse_broken(at, st.st_dev, err))
			return false;
		if (!slash || !strcmp(at, "/"))
			return true;
		slash[slash == at] = '\0';
	}
}

char *top_prefix(const char *top, const char *path)
{
	auto_free char *real = realpath(path, NULL);
	const char *below = real ? real + strlen(top) : "";

	below += *below == '/';
	return xasprintf("%s%s", below, *below ? "/" : "");
}
