#include "source/origin.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "source/objects.h"
#include "source/repository.h"
#include "source/snapshot.h"

struct origin {
	struct origin_options options;

	/* One of these. */
	struct listing *listing;   /* owned */
	struct changes *changes;   /* owned */
	struct snapshot *snapshot; /* owned */
	git_oid file;              /* of a revision that is one */
	char *name;                /* owned: its path; NULL: it is none, or was told */

	struct repository *repository; /* owned: of a revision */
	struct objects *objects;       /* owned */
	git_odb_object *object;        /* owned: the entry's */
	char *prefix;                  /* owned: before the paths */
	char *path;                    /* owned: the entry's */
	size_t missing;
};

struct origin *origin_directory(const char *path, const struct origin_options *options,
				json_t *notes, struct rlmd_error *err)
{
	struct origin *origin = xcalloc(1, sizeof *origin);

	origin->options = *options;
	if (options->changes.comparison)
		origin->changes = changes_new(path, &options->listing, &options->changes, notes,
					      err);
	else
		origin->listing = listing_new(path, &options->listing, notes, err);
	if (origin->changes || origin->listing)
		return origin;
	origin_free(origin);
	return NULL;
}

void origin_free(struct origin *origin)
{
	if (!origin)
		return;
	git_odb_object_free(origin->object);
	listing_free(origin->listing);
	changes_free(origin->changes);
	snapshot_free(origin->snapshot);
	objects_free(origin->objects);
	repository_free(origin->repository);
	free(origin->name);
	free(origin->prefix);
	free(origin->path);
	free(origin);
}

/* --- a revision ------------------------------------------------------------------------ */

static bool open_objects(struct origin *origin, struct rlmd_error *err)
{
	const char *directory = origin->options.directory;

	if (!repository_find_any(directory, &origin->repository, err))
		return false;
	if (!origin->repository)
		return error_set(err, RLMD_ERROR_INPUT,
				 "git:REV is of the repository that the directory %s is in, and "
				 "there is none; go to one, or put ./ before the name of a file",
				 directory);
	origin->objects = objects_open(origin->repository, origin->options.changes.alternates, err);
	return origin->objects;
}

/* The path of "REV:PATH" as a prefix of those below it. */
static void set_prefix(struct origin *origin, const char *revision)
{
	const char *colon = strchr(revision, ':');
	size_t size = colon ? strlen(colon + 1) : 0;

	while (size && colon[size] == '/')
		size--;
	origin->prefix = size ? xasprintf("%.*s/", (int)size, colon + 1) : xstrdup("");
	if (colon)
		origin->name = xstrndup(colon + 1, size);
}

struct origin *origin_revision(const char *revision, const struct origin_options *options,
			       json_t *notes, struct rlmd_error *err)
{
	struct origin *origin = xcalloc(1, sizeof *origin);
	git_object *object = NULL;

	origin->options = *options;
	set_prefix(origin, revision);
	if (open_objects(origin, err))
		object = objects_find(origin->objects, revision, err);
	if (!object) {
		origin_free(origin);
		return NULL;
	}
	if (origin->repository->ignored)
		json_array_append_new(notes, json_from_text(text_of(origin->repository->ignored)));
	if (git_object_type(object) == GIT_OBJECT_TREE) {
		free(take_pointer(&origin->name));
		origin->snapshot = snapshot_new(origin->objects, (git_tree *)object, "",
						options->listing.selection);
	} else {
		origin->file = *git_object_id(object);
		git_object_free(object);
	}
	return origin;
}

/* The text of what has an id; what it is where it has none that can be taken. */
static enum listing_kind read_object(struct origin *origin, const git_oid *id,
				     struct rlmd_text *ret)
{
	size_t size, most = origin->options.changes.max_file_size;

	origin->object = objects_read(origin->objects, id, most, &size);
	if (!origin->object)
		return size > most ? LISTING_LARGE : LISTING_UNREADABLE;
	*ret = objects_text(origin->object);
	return LISTING_FILE;
}

static bool next_file(struct origin *origin, struct listing_entry *ret)
{
	*ret = (struct listing_entry){.fd = -1};
	free(origin->path);
	origin->path = take_pointer(&origin->name);
	if (!origin->path)
		return false;
	ret->path = origin->path;
	ret->kind = read_object(origin, &origin->file, &ret->text);
	return true;
}

static bool next_of_revision(struct origin *origin, struct listing_entry *ret)
{
	if (!snapshot_next(origin->snapshot, ret))
		return false;
	if (ret->kind == LISTING_PASSED)
		return true;
	free(origin->path);
	origin->path = xasprintf("%s%s", origin->prefix, ret->path);
	ret->path = origin->path;
	if (ret->kind == LISTING_FILE)
		ret->kind = read_object(origin, ret->id, &ret->text);
	return true;
}

bool origin_next(struct origin *origin, struct listing_entry *ret)
{
	git_odb_object_free(take_pointer(&origin->object));
	if (origin->listing)
		return listing_next(origin->listing, ret);
	if (origin->changes)
		return changes_next(origin->changes, ret);
	return origin->snapshot ? next_of_revision(origin, ret) : next_file(origin, ret);
}

const char *origin_missing(struct origin *origin)
{
	return selection_missing(origin->options.listing.selection, &origin->missing);
}
