#include "lister/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"

enum { DEPTH_MAX = 256 }; /* each level holds a descriptor */

struct name {
	char *text; /* owned; a directory's ends in '/', as it sorts */
	unsigned char type;
};

struct level {
	int fd; /* owned */
	struct name *names;
	size_t count, next;
	size_t path_size; /* of the walk's path, up to this directory */
};

struct walk {
	struct level levels[DEPTH_MAX];
	size_t depth; /* how many are open */
	char *path;   /* owned: of the entry at hand */
	int fd;       /* owned: its file; or -1 */
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

/* Asks for the type if the file system does not tell it with the name. */
static unsigned char type_of(int fd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
		return DT_REG; /* opening it will fail too, and be told */
	return (unsigned char)IFTODT(st.st_mode);
}

static void take_name(struct level *level, const struct dirent *entry)
{
	struct name *name;

	level->names = array_grow(level->names, level->count, sizeof *level->names);
	name = &level->names[level->count++];
	name->type = type_of(level->fd, entry);
	name->text = xasprintf("%s%s", entry->d_name, name->type == DT_DIR ? "/" : "");
}

static bool list_names(struct level *level)
{
	auto_close int again = openat(level->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = again < 0 ? NULL : fdopendir(again);
	struct dirent *entry;
	int failure;

	if (!directory)
		return false;
	take_fd(&again);
	while ((errno = 0, entry = readdir(directory)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    strcmp(entry->d_name, ".git") != 0)
			take_name(level, entry);
	failure = errno; /* a part of the names is not what was asked for */
	closedir(directory);
	if (level->count)
		qsort(level->names, level->count, sizeof *level->names, compare_names);
	errno = failure;
	return !failure;
}

static void leave(struct walk *walk)
{
	struct level *level = &walk->levels[--walk->depth];

	for (size_t i = 0; i < level->count; i++)
		free(level->names[i].text);
	free(level->names);
	close(level->fd);
}

/* `fd` is taken. */
static bool enter(struct walk *walk, int fd)
{
	struct level *level = &walk->levels[walk->depth++];

	*level = (struct level){.fd = fd, .path_size = walk->path ? strlen(walk->path) : 0};
	if (list_names(level))
		return true;
	leave(walk);
	return false;
}

/* The path of the next entry of the innermost directory. */
static void step(struct walk *walk, const struct level *level, const char *name)
{
	char *path = xasprintf("%.*s%s", (int)level->path_size, walk->path ? walk->path : "", name);

	free(walk->path);
	walk->path = path;
}

/* The last part of the path at hand, in the innermost directory. */
static const char *name_at_hand(const struct walk *walk)
{
	return walk->path + walk->levels[walk->depth - 1].path_size;
}

bool walk_enter(struct walk *walk)
{
	auto_free char *name = NULL;
	int fd;

	if (walk->depth == DEPTH_MAX)
		return false;
	name = xstrdup(name_at_hand(walk));
	name[strlen(name) - 1] = '\0';
	fd = openat(walk_directory(walk), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && enter(walk, fd);
}

void walk_leave(struct walk *walk)
{
	leave(walk);
}

/* It may be something else by now. */
int walk_open(struct walk *walk)
{
	auto_close int fd = openat(walk_directory(walk), name_at_hand(walk),
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return -1;
	return walk->fd = take_fd(&fd);
}

int walk_directory(const struct walk *walk)
{
	return walk->levels[walk->depth - 1].fd;
}

static enum walk_kind kind_of(unsigned char type)
{
	switch (type) {
	case DT_DIR:
		return WALK_DIRECTORY;
	case DT_REG:
		return WALK_FILE;
	case DT_LNK:
		return WALK_LINK;
	default: /* the kernel's, not ours */
		return WALK_SPECIAL;
	}
}

static void visit(struct walk *walk, struct walk_entry *entry)
{
	struct level *level = &walk->levels[walk->depth - 1];
	const struct name *name = &level->names[level->next++];

	step(walk, level, name->text);
	*entry = (struct walk_entry){kind_of(name->type), walk->path, walk->depth};
}

struct walk *walk_new(const char *path, struct rlmd_error *err)
{
	struct walk *walk = xcalloc(1, sizeof *walk);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	walk->fd = -1;
	if (fd >= 0 && enter(walk, fd))
		return walk;
	error_errno(err, RLMD_ERROR_INPUT, "cannot read the directory %s", path);
	walk_free(walk);
	return NULL;
}

static void close_file(struct walk *walk)
{
	if (walk->fd >= 0)
		close(take_fd(&walk->fd));
}

bool walk_next(struct walk *walk, struct walk_entry *ret)
{
	close_file(walk);
	while (walk->depth) {
		const struct level *level = &walk->levels[walk->depth - 1];

		if (level->next < level->count) {
			visit(walk, ret);
			return true;
		}
		leave(walk);
	}
	return false;
}

void walk_free(struct walk *walk)
{
	if (!walk)
		return;
	close_file(walk);
	while (walk->depth)
		leave(walk);
	free(walk->path);
	free(walk);
}
