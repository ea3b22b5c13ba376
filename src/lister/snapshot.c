#include "lister/snapshot.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "source/lister.h"

enum { DEPTH_MAX = 256 };

/* A tree that is open. */
struct stage {
	git_tree *tree; /* owned */
	size_t next;
	size_t path_size; /* of the path, with what is above */
	size_t rules;     /* how deep they were before it */
};

struct snapshot {
	struct objects *objects;     /* lent */
	struct selection *selection; /* lent */
	struct rules *attributes;    /* owned */
	struct stage stages[DEPTH_MAX];
	size_t depth;
	char *path;         /* owned: of the entry at hand, from the top of the repository on */
	size_t prefix_size; /* of it, which is not told */
	size_t met, bytes;  /* entries so far, and of their paths */
};

static void add_attributes(struct snapshot *snapshot, const git_tree *tree, const char *base)
{
	const git_tree_entry *entry = git_tree_entry_byname(tree, ".gitattributes");
	git_odb_object *object;
	size_t size;

	if (!entry || git_tree_entry_filemode(entry) == GIT_FILEMODE_LINK)
		return;
	object = objects_read(snapshot->objects, git_tree_entry_id(entry), RULES_MAX, &size);
	if (object)
		rules_add_attributes(snapshot->attributes, base, objects_text(object));
	git_odb_object_free(object);
}

/* `tree` is taken; its path is that at hand. */
static void enter(struct snapshot *snapshot, git_tree *tree)
{
	snapshot->stages[snapshot->depth++] = (struct stage){
		.tree = tree,
		.path_size = strlen(snapshot->path),
		.rules = rules_depth(snapshot->attributes),
	};
	add_attributes(snapshot, tree, snapshot->path);
}

static void leave(struct snapshot *snapshot)
{
	const struct stage *stage = &snapshot->stages[--snapshot->depth];

	rules_cut(snapshot->attributes, stage->rules);
	git_tree_free(stage->tree);
}

static void set_path(struct snapshot *snapshot, size_t size, const char *name, const char *end)
{
	char *path = xasprintf("%.*s%s%s", (int)size, snapshot->path, name, end);

	free(snapshot->path);
	snapshot->path = path;
}

/* Into the tree that this entry is; false: it cannot be read. */
static bool descend(struct snapshot *snapshot, const git_tree_entry *entry)
{
	git_tree *tree = NULL;

	if (snapshot->depth < DEPTH_MAX && strlen(snapshot->path) < PATH_MAX)
		tree = objects_subtree(snapshot->objects, git_tree_entry_id(entry));
	if (tree)
		enter(snapshot, tree);
	return tree;
}

/* Down to the prefix; what is beside the way is not told. */
static void find_prefix(struct snapshot *snapshot, const char *prefix)
{
	const char *slash;

	while ((slash = strchr(prefix, '/'))) {
		struct stage *stage = &snapshot->stages[snapshot->depth - 1];
		auto_free char *name = xstrndup(prefix, (size_t)(slash - prefix));
		const git_tree_entry *entry = git_tree_entry_byname(stage->tree, name);

		stage->next = git_tree_entrycount(stage->tree);
		set_path(snapshot, stage->path_size, name, "/");
		if (!entry || git_tree_entry_type(entry) != GIT_OBJECT_TREE ||
		    !descend(snapshot, entry))
			return;
		prefix = slash + 1;
	}
}

struct snapshot *snapshot_new(struct objects *objects, git_tree *tree, const char *prefix,
			      struct selection *selection)
{
	struct snapshot *snapshot = xcalloc(1, sizeof *snapshot);

	snapshot->objects = objects;
	snapshot->selection = selection;
	snapshot->attributes = rules_new(false);
	snapshot->path = xstrdup("");
	snapshot->prefix_size = strlen(prefix);
	enter(snapshot, tree);
	find_prefix(snapshot, prefix);
	return snapshot;
}

void snapshot_free(struct snapshot *snapshot)
{
	if (!snapshot)
		return;
	while (snapshot->depth)
		leave(snapshot);
	rules_free(snapshot->attributes);
	free(snapshot->path);
	free(snapshot);
}

static enum listing_kind judge(const struct snapshot *snapshot, git_filemode_t mode)
{
	if (mode == GIT_FILEMODE_LINK)
		return LISTING_LINK;
	if (mode == GIT_FILEMODE_COMMIT)
		return LISTING_SUBMODULE;
	return listing_judge(snapshot->path,
			     rules_state(snapshot->attributes, snapshot->path, RULES_GENERATED),
			     rules_state(snapshot->attributes, snapshot->path, RULES_VENDORED));
}

static enum listing_kind visit(struct snapshot *snapshot, struct listing_entry *ret)
{
	struct stage *stage = &snapshot->stages[snapshot->depth - 1];
	const git_tree_entry *entry = git_tree_entry_byindex(stage->tree, stage->next++);
	git_filemode_t mode = git_tree_entry_filemode(entry);
	bool directory = mode == GIT_FILEMODE_TREE;

	set_path(snapshot, stage->path_size, git_tree_entry_name(entry), directory ? "/" : "");
	ret->path = snapshot->path + snapshot->prefix_size;
	ret->id = git_tree_entry_id(entry);
	ret->executable = mode == GIT_FILEMODE_BLOB_EXECUTABLE;
	if (directory && !selection_enters(snapshot->selection, ret->path))
		return LISTING_PASSED;
	if (directory)
		return descend(snapshot, entry) ? LISTING_PASSED : LISTING_UNREADABLE;
	if (!selection_wants(snapshot->selection, ret->path))
		return LISTING_PASSED;
	selection_meet(snapshot->selection, ret->path);
	ret->met = true;
	return judge(snapshot, mode);
}

static bool is_too_large(const struct snapshot *snapshot)
{
	return snapshot->met > LISTER_ENTRIES_MAX || snapshot->bytes > LISTER_PATHS_MAX;
}

bool snapshot_next(struct snapshot *snapshot, struct listing_entry *ret)
{
	while (snapshot->depth && !is_too_large(snapshot)) {
		const struct stage *stage = &snapshot->stages[snapshot->depth - 1];

		if (stage->next < git_tree_entrycount(stage->tree)) {
			*ret = (struct listing_entry){.fd = -1};
			ret->kind = visit(snapshot, ret);
			snapshot->met++;
			snapshot->bytes += strlen(snapshot->path);
			return true;
		}
		leave(snapshot);
	}
	return false;
}

bool snapshot_failed(const struct snapshot *snapshot, struct rlmd_error *err)
{
	return is_too_large(snapshot) &&
	       !error_set(err, RLMD_ERROR_INPUT,
			  "the revision has more than %d million files and directories, or paths "
			  "of more than %d MiB: name a directory of it (git:REV:PATH)",
			  LISTER_ENTRIES_MAX >> 20, LISTER_PATHS_MAX >> 20);
}
