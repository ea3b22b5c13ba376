#include "lister/ignores.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "lister/rules.h"
#include "source/nofollow.h"

#define NAME ".rlmdignore"

struct ignores {
	struct rules *rules; /* owned */
	char *prefix;        /* owned */
};

static struct ignores *ignores_new(struct rlmd_text text, const char *prefix)
{
	struct ignores *ignores = xcalloc(1, sizeof *ignores);

	ignores->rules = rules_new(false);
	ignores->prefix = xstrdup(prefix);
	rules_add_ignores(ignores->rules, "", text);
	return ignores;
}

void ignores_free(struct ignores *ignores)
{
	if (!ignores)
		return;
	rules_free(ignores->rules);
	free(ignores->prefix);
	free(ignores);
}

static void note(json_t *notes)
{
	auto_free char *text = xasprintf(NAME " leaves out nothing: it is no regular file of at "
					      "most %d MiB that can be read",
					 RULES_MAX >> 20);

	json_append(notes, json_from_text(text_of(text)));
}

struct ignores *ignores_of_directory(const char *top, const char *prefix, json_t *notes)
{
	auto_close int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t size;
	auto_free char *bytes = fd < 0 ? NULL : nofollow_read(fd, NAME, RULES_MAX, &size);
	struct stat st;

	if (bytes)
		return ignores_new(text_from(bytes, size), prefix);
	if (fd >= 0 && !fstatat(fd, NAME, &st, AT_SYMLINK_NOFOLLOW))
		note(notes);
	return NULL;
}

struct ignores *ignores_of_tree(struct objects *objects, const git_tree *tree, const char *prefix,
				json_t *notes)
{
	const git_tree_entry *entry = git_tree_entry_byname(tree, NAME);
	git_odb_object *object = NULL;
	struct ignores *ignores;
	size_t size;

	if (!entry)
		return NULL;
	if (git_tree_entry_type(entry) == GIT_OBJECT_BLOB &&
	    git_tree_entry_filemode(entry) != GIT_FILEMODE_LINK)
		object = objects_read(objects, git_tree_entry_id(entry), RULES_MAX, &size);
	if (!object) {
		note(notes);
		return NULL;
	}
	ignores = ignores_new(objects_text(object), prefix);
	git_odb_object_free(object);
	return ignores;
}

bool ignores_file(const struct ignores *ignores, const char *path)
{
	auto_free char *whole = ignores ? xasprintf("%s%s", ignores->prefix, path) : NULL;

	if (!ignores)
		return false;
	for (char *slash = strchr(whole, '/'); slash; slash = strchr(slash + 1, '/')) {
		bool ignored;

		*slash = '\0';
		ignored = rules_ignore(ignores->rules, whole, true);
		*slash = '/';
		if (ignored)
			return true;
	}
	return rules_ignore(ignores->rules, whole, false);
}
