#include "lister/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "lister/walk.h"
#include "lister/worktree.h"
#include "source/nofollow.h"
#include "source/top.h"

/* A directory that is open. */
struct entered {
	struct worktree *tree; /* owned where it is the first of it; NULL: in no work tree */
	bool first;
	size_t base; /* of the walk's path: where the tree's begins */
};

struct listing {
	struct walk *walk; /* owned */
	char *root;        /* owned */
	char *prefix;      /* owned: of the directory in its work tree, empty or with a slash */
	json_t *notes;     /* lent */
	struct listing_options options;
	struct entered *frames; /* owned; as many as the walk has directories open */
	size_t depth;
	size_t broken; /* repositories below it that were told of */
};

enum { BROKEN_SHOWN = 5 }; /* all of them are counted as what cannot be read */

static void push(struct listing *listing, struct worktree *tree, bool first, size_t base)
{
	listing->frames = array_grow(listing->frames, listing->depth, sizeof *listing->frames);
	listing->frames[listing->depth++] = (struct entered){tree, first, base};
}

static void pop(struct listing *listing)
{
	const struct entered *frame = &listing->frames[--listing->depth];

	if (frame->first)
		worktree_free(frame->tree);
	else if (frame->tree)
		worktree_leave(frame->tree);
}

static const struct entered *innermost(const struct listing *listing)
{
	return &listing->frames[listing->depth - 1];
}

/* The path at hand as the work tree has it, new. */
static char *path_in_tree(const struct listing *listing, const char *path)
{
	const struct entered *frame = innermost(listing);

	return xasprintf("%s%s", frame->base ? "" : listing->prefix, path + frame->base);
}

/* --- the directory itself ------------------------------------------------------------- */

static void note(struct listing *listing, const char *path, const char *what)
{
	auto_free char *text = xasprintf("%s: %s", path, what);

	json_append(listing->notes, json_from_text(text_of(text)));
}

/* The rules of the directories above it hold too. */
static bool enter_from_top(struct worktree *tree, const char *prefix)
{
	const char *top = worktree_repository(tree)->top;
	auto_close int at = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *slash = prefix - 1;

	if (!worktree_enter(tree, "", at, false))
		return false;
	while ((slash = strchr(slash + 1, '/'))) {
		auto_free char *path = xstrndup(prefix, (size_t)(slash - prefix) + 1);
		enum worktree_directory how = worktree_directory(tree, path);
		auto_close int fd = -1;

		path[slash - prefix] = '\0';
		fd = at < 0 ? -1 : nofollow_directory(at, path);
		path[slash - prefix] = '/';
		if (!worktree_enter(tree, path, fd, how != WORKTREE_ENTER && how != WORKTREE_OTHER))
			return false;
	}
	return true;
}

static bool open_tree(struct listing *listing, struct repository *repository,
		      struct rlmd_error *err)
{
	struct worktree *tree;

	if (repository->ignored)
		note(listing, listing->root, repository->ignored);
	free(listing->prefix);
	listing->prefix = top_prefix(repository->top, listing->root);
	tree = worktree_new(repository, err);
	if (!tree)
		return false;
	if (enter_from_top(tree, listing->prefix)) {
		push(listing, tree, true, 0);
		return true;
	}
	worktree_free(tree);
	return error_set(err, RLMD_ERROR_INPUT,
			 "%s: its .gitignore files, with those above it, are more than %d MiB, or "
			 "are only in the index and cannot be read there",
			 listing->root, RULES_MAX >> 20);
}

struct listing *listing_new(const char *path, const struct listing_options *options, json_t *notes,
			    struct rlmd_error *err)
{
	struct listing *listing = xcalloc(1, sizeof *listing);
	struct repository *repository = NULL;

	listing->root = xstrdup(path);
	listing->prefix = xstrdup("");
	listing->notes = notes;
	listing->options = *options;
	listing->walk = walk_new(path, err);
	if (!listing->walk || !repository_find(path, &repository, err) ||
	    (repository && !open_tree(listing, repository, err))) {
		listing_free(listing);
		return NULL;
	}
	if (!repository)
		push(listing, NULL, false, 0);
	return listing;
}

void listing_free(struct listing *listing)
{
	if (!listing)
		return;
	while (listing->depth)
		pop(listing);
	walk_free(listing->walk);
	free(listing->frames);
	free(listing->root);
	free(listing->prefix);
	free(listing);
}

/* --- directories ------------------------------------------------------------------------ */

/* The work tree that begins in the directory that was entered last. */
static enum listing_kind enter_tree(struct listing *listing, const char *path)
{
	auto_free char *full = xasprintf("%s/%s", listing->root, path);
	struct repository *repository = NULL;
	struct worktree *tree = NULL;
	struct rlmd_error err = {0};

	if (!repository_at(full, &repository, &err) || !repository ||
	    !(tree = worktree_new(repository, &err))) {
		if (err.kind && listing->broken++ < BROKEN_SHOWN)
			note(listing, path, err.text);
		walk_leave(listing->walk);
		return LISTING_UNREADABLE;
	}
	if (!worktree_enter(tree, "", walk_directory(listing->walk), false)) {
		worktree_free(tree);
		walk_leave(listing->walk);
		return LISTING_UNRULED;
	}
	push(listing, tree, true, strlen(path));
	return LISTING_PASSED;
}

/* Whether the list names something in there, whatever git says of it. */
static bool is_asked_for(const struct listing *listing, const char *path)
{
	return selection_names(listing->options.selection, path);
}

/* In no work tree; but one may begin there. */
static enum listing_kind visit_plain(struct listing *listing, const char *path)
{
	if (!walk_enter(listing->walk))
		return LISTING_UNREADABLE;
	if (top_begins_at(walk_directory(listing->walk)))
		return enter_tree(listing, path);
	push(listing, NULL, false, 0);
	return LISTING_PASSED;
}

static enum listing_kind visit_submodule(struct listing *listing, const char *path)
{
	if (!walk_enter(listing->walk))
		return LISTING_UNREADABLE;
	if (top_begins_at(walk_directory(listing->walk))) {
		if (listing->options.recurse_submodules || is_asked_for(listing, path))
			return enter_tree(listing, path);
		walk_leave(listing->walk);
		return LISTING_SUBMODULE;
	}
	walk_leave(listing->walk); /* git lists nothing of what is there in its place */
	return LISTING_PASSED;
}

static enum listing_kind visit_directory(struct listing *listing, const char *path)
{
	const struct entered *frame = innermost(listing);
	auto_free char *in_tree = path_in_tree(listing, path);
	enum worktree_directory how;

	if (!selection_enters(listing->options.selection, path))
		return LISTING_PASSED;
	if (!frame->tree)
		return visit_plain(listing, path);
	how = worktree_directory(frame->tree, in_tree);
	if (how == WORKTREE_PASS && !is_asked_for(listing, path))
		return LISTING_PASSED;
	if (how == WORKTREE_SUBMODULE)
		return visit_submodule(listing, path);
	if (!walk_enter(listing->walk))
		return LISTING_UNREADABLE;
	if (how == WORKTREE_OTHER && top_begins_at(walk_directory(listing->walk))) {
		if (is_asked_for(listing, path))
			return enter_tree(listing, path);
		walk_leave(listing->walk);
		return LISTING_SUBMODULE;
	}
	if (!worktree_enter(frame->tree, in_tree, walk_directory(listing->walk),
			    how == WORKTREE_TRACKED || how == WORKTREE_PASS)) {
		walk_leave(listing->walk);
		return LISTING_UNRULED;
	}
	push(listing, frame->tree, false, frame->base);
	return LISTING_PASSED;
}

/* --- files ------------------------------------------------------------------------------- */

static bool is_generated_name(const char *name)
{
	static const struct {
		const char *text;
		bool is_ending;
	} rows[] = {
#define NAME(name)  {name, false},
#define ENDING(end) {end, true},
#include "lister/generated.def"
#undef NAME
#undef ENDING
	};
	size_t size = strlen(name);

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t end = strlen(rows[i].text);

		if (rows[i].is_ending ? size > end && !strcasecmp(name + size - end, rows[i].text)
				      : !strcmp(name, rows[i].text))
			return true;
	}
	return false;
}

enum listing_kind listing_judge(const char *path, enum rules_state generated,
				enum rules_state vendored)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (vendored == RULES_TRUE)
		return LISTING_VENDORED;
	if (generated == RULES_TRUE || (generated == RULES_UNSPECIFIED && is_generated_name(name)))
		return LISTING_GENERATED;
	return LISTING_FILE;
}

static enum listing_kind judge(const struct listing *listing, const char *in_tree)
{
	const struct worktree *tree = innermost(listing)->tree;

	if (!tree)
		return listing_judge(in_tree, RULES_UNSPECIFIED, RULES_UNSPECIFIED);
	return listing_judge(in_tree, worktree_state(tree, in_tree, RULES_GENERATED),
			     worktree_state(tree, in_tree, RULES_VENDORED));
}

/* Whether the entry is one that is asked for; notes what the index has of it. */
static bool is_listed(const struct listing *listing, const char *path, const char *in_tree,
		      struct listing_entry *ret)
{
	const struct worktree *tree = innermost(listing)->tree;

	if (!selection_wants(listing->options.selection, path))
		return false;
	ret->tracked = tree ? worktree_tracked(tree, in_tree) : NULL;
	if (ret->tracked || !tree)
		return true;
	return !listing->options.tracked_only &&
	       (worktree_lists(tree, in_tree) || is_asked_for(listing, path));
}

static enum listing_kind visit_entry(struct listing *listing, const struct walk_entry *entry,
				     struct listing_entry *ret)
{
	auto_free char *in_tree = path_in_tree(listing, entry->path);
	enum listing_kind kind;

	if (!is_listed(listing, entry->path, in_tree, ret))
		return LISTING_PASSED;
	selection_meet(listing->options.selection, entry->path);
	ret->met = true;
	if (entry->kind != WALK_FILE)
		return entry->kind == WALK_LINK ? LISTING_LINK : LISTING_SPECIAL;
	kind = judge(listing, in_tree);
	if (kind != LISTING_FILE && !listing->options.open_all)
		return kind;
	ret->fd = walk_open(listing->walk);
	return ret->fd < 0 ? LISTING_UNREADABLE : kind;
}

const char *listing_root(const struct listing *listing)
{
	return listing->root;
}

const char *listing_top(const struct listing *listing)
{
	const struct worktree *tree = listing->frames[0].tree;

	return tree ? worktree_repository(tree)->top : listing->root;
}

const char *listing_prefix(const struct listing *listing)
{
	return listing->prefix;
}

bool listing_next(struct listing *listing, struct listing_entry *ret)
{
	struct walk_entry entry;

	if (!walk_next(listing->walk, &entry))
		return false;
	while (listing->depth > entry.depth)
		pop(listing);
	*ret = (struct listing_entry){.path = entry.path, .fd = -1};
	errno = 0;
	ret->kind = entry.kind == WALK_DIRECTORY ? visit_directory(listing, entry.path)
						 : visit_entry(listing, &entry, ret);
	ret->error = errno;
	return true;
}
