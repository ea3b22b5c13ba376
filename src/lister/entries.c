#include "lister/entries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "lister/ignores.h"
#include "lister/objects.h"
#include "lister/repository.h"
#include "lister/snapshot.h"

struct entries {
	struct entries_options options;

	/* One of these. */
	struct listing *listing;   /* owned */
	struct changes *changes;   /* owned */
	struct snapshot *snapshot; /* owned */
	git_oid file;              /* of a revision that is one */
	char *name;                /* owned: its path; NULL: it is none, or was told */

	const struct ignores *ignores; /* lent by the changes, or our own; or NULL */
	struct ignores *own_ignores;   /* owned */

	struct repository *repository; /* owned: of a revision */
	struct objects *objects;       /* owned */
	git_odb_object *object;        /* owned: the entry's */
	char *prefix;                  /* owned: before the paths */
	char *path;                    /* owned: the entry's */
};

struct entries *entries_directory(const char *path, const struct entries_options *options,
				  json_t *notes, struct rlmd_error *err)
{
	struct entries *entries = xcalloc(1, sizeof *entries);

	entries->options = *options;
	if (options->changes.comparison)
		entries->changes = changes_new(path, &options->listing, &options->changes, notes,
					       err);
	else
		entries->listing = listing_new(path, &options->listing, notes, err);
	if (entries->changes)
		entries->ignores = changes_ignores(entries->changes);
	if (entries->listing)
		entries->ignores = entries->own_ignores = ignores_of_directory(
			listing_top(entries->listing), listing_prefix(entries->listing), notes);
	if (entries->changes || entries->listing)
		return entries;
	entries_free(entries);
	return NULL;
}

void entries_free(struct entries *entries)
{
	if (!entries)
		return;
	git_odb_object_free(entries->object);
	ignores_free(entries->own_ignores);
	listing_free(entries->listing);
	changes_free(entries->changes);
	snapshot_free(entries->snapshot);
	objects_free(entries->objects);
	repository_free(entries->repository);
	free(entries->name);
	free(entries->prefix);
	free(entries->path);
	free(entries);
}

/* --- a revision ------------------------------------------------------------------------ */

/* The path of "REV:PATH" as a prefix of those below it. */
static void set_prefix(struct entries *entries, const char *revision)
{
	const char *colon = strchr(revision, ':');
	size_t size = colon ? strlen(colon + 1) : 0;

	while (size && colon[size] == '/')
		size--;
	entries->prefix = size ? xasprintf("%.*s/", (int)size, colon + 1) : xstrdup("");
	if (colon)
		entries->name = xstrndup(colon + 1, size);
}

/* Those of the whole revision, whatever directory of it is named. */
static void find_ignores(struct entries *entries, const char *revision, json_t *notes)
{
	auto_free char *whole = xstrndup(revision, strcspn(revision, ":"));
	struct rlmd_error err;
	git_object *tree = objects_find(entries->objects, whole, &err);

	if (tree && git_object_type(tree) == GIT_OBJECT_TREE)
		entries->ignores = entries->own_ignores = ignores_of_tree(
			entries->objects, (git_tree *)tree, entries->prefix, notes);
	git_object_free(tree);
}

struct entries *entries_revision(const char *revision, struct repository *repository,
				 const struct entries_options *options, json_t *notes,
				 struct rlmd_error *err)
{
	struct entries *entries = xcalloc(1, sizeof *entries);
	git_object *object = NULL;

	entries->options = *options;
	entries->repository = repository;
	set_prefix(entries, revision);
	entries->objects = objects_open(repository, options->changes.alternates, err);
	if (entries->objects)
		object = objects_find(entries->objects, revision, err);
	if (!object) {
		entries_free(entries);
		return NULL;
	}
	if (entries->repository->ignored)
		json_append(notes, json_from_text(text_of(entries->repository->ignored)));
	if (git_object_type(object) == GIT_OBJECT_TREE) {
		free(take_pointer(&entries->name));
		find_ignores(entries, revision, notes);
		entries->snapshot = snapshot_new(entries->objects, (git_tree *)object, "",
						 options->listing.selection);
	} else {
		entries->file = *git_object_id(object);
		git_object_free(object);
	}
	return entries;
}

/* The text of what has an id; what it is where it has none that can be taken. */
static enum listing_kind read_object(struct entries *entries, const git_oid *id,
				     struct rlmd_text *ret, int *ret_error)
{
	size_t size, most = entries->options.changes.max_file_size;

	errno = 0;
	entries->object = objects_read(entries->objects, id, most, &size);
	*ret_error = errno;
	if (!entries->object)
		return size > most ? LISTING_LARGE : LISTING_UNREADABLE;
	*ret = objects_text(entries->object);
	return LISTING_FILE;
}

static bool next_file(struct entries *entries, struct listing_entry *ret)
{
	*ret = (struct listing_entry){.fd = -1};
	free(entries->path);
	entries->path = take_pointer(&entries->name);
	if (!entries->path)
		return false;
	ret->path = entries->path;
	ret->kind = read_object(entries, &entries->file, &ret->text, &ret->error);
	return true;
}

static bool next_of_revision(struct entries *entries, struct listing_entry *ret)
{
	if (!snapshot_next(entries->snapshot, ret))
		return false;
	if (ret->kind == LISTING_PASSED)
		return true;
	free(entries->path);
	entries->path = xasprintf("%s%s", entries->prefix, ret->path);
	ret->path = entries->path;
	ret->below = strlen(entries->prefix);
	if (ret->kind == LISTING_FILE)
		ret->kind = read_object(entries, ret->id, &ret->text, &ret->error);
	return true;
}

static bool next(struct entries *entries, struct listing_entry *ret)
{
	if (entries->listing)
		return listing_next(entries->listing, ret);
	if (entries->changes)
		return changes_next(entries->changes, ret);
	return entries->snapshot ? next_of_revision(entries, ret) : next_file(entries, ret);
}

/* A file that is named is wanted, whatever is ignored. */
static bool is_ignored(const struct entries *entries, const struct listing_entry *entry)
{
	return entry->kind == LISTING_FILE &&
	       ignores_file(entries->ignores, entry->path + entry->below) &&
	       !selection_names(entries->options.listing.selection, entry->path + entry->below);
}

bool entries_next(struct entries *entries, struct listing_entry *ret)
{
	git_odb_object_free(take_pointer(&entries->object));
	if (!next(entries, ret))
		return false;
	if (is_ignored(entries, ret)) {
		ret->kind = LISTING_IGNORED;
		ret->hunks = NULL;
	}
	return true;
}

bool entries_failed(const struct entries *entries, struct rlmd_error *err)
{
	if (entries->changes)
		return changes_failed(entries->changes, err);
	return entries->snapshot && snapshot_failed(entries->snapshot, err);
}
