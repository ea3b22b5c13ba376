#include "lister/worktree.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "lister/objects.h"
#include "lister/user_config.h"
#include "source/nofollow.h"

struct tree_level {
	size_t ignores, attributes; /* how deep the rules were before it */
	bool ignored;
};

struct worktree {
	struct repository *repository; /* owned */
	git_index *index;              /* owned */
	struct rules *ignores;         /* owned */
	struct rules *attributes;      /* owned: of the directories */
	struct rules *own_attributes;  /* owned: of the repository itself, which come first */
	struct tree_level *levels;
	size_t depth;
	struct objects *objects; /* owned; NULL: nobody needed any yet, or there are none */
	bool opened;             /* they were looked for */
};

typedef bool add_fn(struct rules *, const char *base, struct rlmd_text);

/* False: it is too large. Anything but a regular file that can be read has no rules. */
static bool add_file(struct rules *rules, add_fn *add, const char *base, int directory,
		     const char *name)
{
	size_t size;
	auto_free char *bytes = nofollow_read(directory, name, RULES_MAX, &size);
	struct stat st;

	if (bytes)
		return add(rules, base, text_from(bytes, size));
	return fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
	       st.st_size <= RULES_MAX;
}

/* The user's own. */
static bool add_users(struct rules *rules, add_fn *add, enum user_rules which)
{
	struct rlmd_text text;

	return user_config_rules(which, &text) && (!text.size || add(rules, "", text));
}

struct worktree *worktree_new(struct repository *repository, struct rlmd_error *err)
{
	struct worktree *tree = xcalloc(1, sizeof *tree);
	auto_close int common = open(repository->common, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	tree->repository = repository;
	tree->ignores = rules_new(repository->fold);
	tree->attributes = rules_new(repository->fold);
	tree->own_attributes = rules_new(repository->fold);
	add_users(tree->attributes, rules_add_attributes, USER_ATTRIBUTES);
	add_file(tree->own_attributes, rules_add_attributes, "", common, "info/attributes");
	if (!add_users(tree->ignores, rules_add_ignores, USER_IGNORES) ||
	    !add_file(tree->ignores, rules_add_ignores, "", common, "info/exclude"))
		error_set(err, RLMD_ERROR_INPUT,
			  "%s/info/exclude and core.excludesFile are more than %d MiB",
			  repository->common, RULES_MAX >> 20);
	else if ((tree->index = repository_index(repository, err)))
		return tree;
	worktree_free(tree);
	return NULL;
}

void worktree_free(struct worktree *tree)
{
	if (!tree)
		return;
	git_index_free(tree->index);
	repository_free(tree->repository);
	rules_free(tree->ignores);
	rules_free(tree->attributes);
	rules_free(tree->own_attributes);
	objects_free(tree->objects);
	free(tree->levels);
	free(tree);
}

const struct repository *worktree_repository(const struct worktree *tree)
{
	return tree->repository;
}

static bool is_ignored_here(const struct worktree *tree)
{
	return tree->depth && tree->levels[tree->depth - 1].ignored;
}

static git_odb_object *read_object(struct worktree *tree, const git_oid *id)
{
	size_t size;

	if (!tree->opened)
		tree->objects = objects_open(tree->repository, false, NULL);
	tree->opened = true;
	return tree->objects ? objects_read(tree->objects, id, RULES_MAX, &size) : NULL;
}

/* As add_file(); a file that a sparse checkout leaves out holds all the same, as git has it. */
static bool add_checked_out(struct worktree *tree, struct rules *rules, add_fn *add,
			    const char *path, int directory, const char *name)
{
	auto_free char *whole = xasprintf("%s%s", path, name);
	const git_index_entry *entry = worktree_tracked(tree, whole);
	git_odb_object *object;
	struct stat st;
	bool ok;

	if (!entry || !(entry->flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE) ||
	    !fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW))
		return add_file(rules, add, path, directory, name);
	object = read_object(tree, &entry->id);
	ok = object && add(rules, path, objects_text(object));
	git_odb_object_free(object);
	return ok;
}

/* Rules in a directory that is ignored are not looked at, as git has it. */
bool worktree_enter(struct worktree *tree, const char *path, int directory, bool ignored)
{
	ignored |= is_ignored_here(tree);
	tree->levels = array_grow(tree->levels, tree->depth, sizeof *tree->levels);
	tree->levels[tree->depth++] = (struct tree_level){
		.ignores = rules_depth(tree->ignores),
		.attributes = rules_depth(tree->attributes),
		.ignored = ignored,
	};
	if (!ignored && !add_checked_out(tree, tree->ignores, rules_add_ignores, path, directory,
					 ".gitignore")) {
		worktree_leave(tree);
		return false;
	}
	add_checked_out(tree, tree->attributes, rules_add_attributes, path, directory,
			".gitattributes");
	return true;
}

void worktree_leave(struct worktree *tree)
{
	const struct tree_level *level = &tree->levels[--tree->depth];

	rules_cut(tree->ignores, level->ignores);
	rules_cut(tree->attributes, level->attributes);
}

const git_index_entry *worktree_tracked(const struct worktree *tree, const char *path)
{
	size_t at;

	return git_index_find(&at, tree->index, path) ? NULL
						      : git_index_get_byindex(tree->index, at);
}

bool worktree_lists(const struct worktree *tree, const char *path)
{
	return worktree_tracked(tree, path) ||
	       (!is_ignored_here(tree) && !rules_ignore(tree->ignores, path, false));
}

static bool is_submodule(const struct worktree *tree, const char *name)
{
	const git_index_entry *entry = worktree_tracked(tree, name);

	return entry && entry->mode == GIT_FILEMODE_COMMIT;
}

enum worktree_directory worktree_directory(const struct worktree *tree, const char *path)
{
	auto_free char *name = xstrndup(path, strlen(path) - 1);
	size_t at;
	bool ignored, tracked;

	if (is_submodule(tree, name))
		return WORKTREE_SUBMODULE;
	ignored = is_ignored_here(tree) || rules_ignore(tree->ignores, name, true);
	tracked = !git_index_find_prefix(&at, tree->index, path);
	if (tracked)
		return ignored ? WORKTREE_TRACKED : WORKTREE_ENTER;
	return ignored ? WORKTREE_PASS : WORKTREE_OTHER;
}

enum rules_state worktree_state(const struct worktree *tree, const char *path,
				enum rules_attribute attribute)
{
	enum rules_state state = rules_state(tree->own_attributes, path, attribute);

	return state ? state : rules_state(tree->attributes, path, attribute);
}
