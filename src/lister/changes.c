#include "lister/changes.h"

#include <git2.h>
#include <git2/sys/hashsig.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "lister/hunks.h"
#include "lister/ignores.h"
#include "lister/objects.h"
#include "lister/repository.h"
#include "lister/snapshot.h"
#include "source/top.h"

enum {
	SIGNED_SIZE_MAX = 1 << 20, /* bytes of a text that is looked at for likeness */
	GONE_MAX = 200,            /* files that are looked at for each new one */
	LIKE_PERCENT = 50,
};

/* A file of the base. */
struct base_file {
	char *path; /* owned */
	git_oid id;
	bool executable;
	bool met; /* the new side has it, be it under another name */

	git_hashsig *signature; /* owned: of its text; NULL: nobody asked, or it cannot be had */
	bool signed_;           /* somebody has asked */
};

struct changes {
	struct repository *repository; /* owned */
	struct objects *objects;       /* owned */
	struct listing_options listing_options;
	struct changes_options options;

	/* The older side of the comparison, while it is read and then sorted. */
	struct snapshot *reading; /* owned; NULL: all is read */
	struct rlmd_error error;  /* it has too much */
	struct base_file *files;  /* owned */
	size_t count, deleted;
	struct base_file **gone; /* owned: those that the new side has not; NULL: nobody asked */
	size_t gone_count;

	/* The new side: one of these. */
	struct listing *listing; /* owned: the work tree */
	struct snapshot *other;  /* owned: a revision */
	git_tree *other_tree;    /* owned: its own tree */
	char *prefix;            /* owned: the directory's place in the repository */
	struct ignores *ignores; /* owned: the older side's; or NULL */
	git_index *index;        /* owned: of the work tree, where something is missing in it */
	struct stat index_stat;

	/* Of the entry at hand. */
	char *bytes;            /* owned */
	git_odb_object *object; /* owned */
	json_t *hunks;          /* owned */
};

/* --- the two sides ---------------------------------------------------------------------- */

/* BASE, BASE..OTHER or BASE...OTHER. */
struct sides {
	char *base, *other; /* owned; no other: the work tree */
	bool parted;
};

static struct sides sides_of(const char *comparison)
{
	const char *dots = strstr(comparison, "..");
	struct sides sides = {.base = xstrdup(comparison)};

	if (!dots)
		return sides;
	sides.parted = dots[2] == '.';
	sides.base[dots - comparison] = '\0';
	sides.other = xstrdup(dots + (sides.parted ? 3 : 2));
	if (!*sides.other) {
		free(sides.other);
		sides.other = xstrdup("HEAD");
	}
	if (!*sides.base) {
		free(sides.base);
		sides.base = xstrdup("HEAD");
	}
	return sides;
}

static git_tree *find_tree(struct objects *objects, const char *revision, struct rlmd_error *err)
{
	git_object *object = objects_find(objects, revision, err);

	if (object && git_object_type(object) != GIT_OBJECT_TREE) {
		git_object_free(object);
		error_set(err, RLMD_ERROR_INPUT, "the revision to compare with is a file");
		return NULL;
	}
	return (git_tree *)object;
}

static bool open_sides(struct changes *changes, const struct sides *sides, const char *prefix,
		       json_t *notes, struct rlmd_error *err)
{
	git_tree *tree = NULL;

	if (sides->other) {
		tree = find_tree(changes->objects, sides->other, err);
		if (!tree)
			return false;
		if (git_tree_dup(&changes->other_tree, tree))
			alloc_failed();
		changes->other = snapshot_new(changes->objects, tree, prefix,
					      changes->listing_options.selection);
	}
	tree = sides->parted ? (git_tree *)objects_merge_base(changes->objects, sides->base,
							      sides->other, err)
			     : find_tree(changes->objects, sides->base, err);
	if (!tree)
		return false;
	changes->ignores = ignores_of_tree(changes->objects, tree, prefix, notes);
	changes->reading = snapshot_new(changes->objects, tree, prefix,
					changes->listing_options.selection);
	return true;
}

static bool open_repository(struct changes *changes, const char *path, json_t *notes,
			    struct rlmd_error *err)
{
	struct sides sides;
	bool ok;

	if (!repository_find(path, &changes->repository, err))
		return false;
	if (!changes->repository)
		return error_set(err, RLMD_ERROR_INPUT,
				 "only work trees of git can be compared, and %s is in none", path);
	changes->objects = objects_open(changes->repository, changes->options.alternates, err);
	if (!changes->objects)
		return false;
	changes->prefix = top_prefix(changes->repository->top, path);
	sides = sides_of(changes->options.comparison);
	ok = open_sides(changes, &sides, changes->prefix, notes, err);
	free(sides.base);
	free(sides.other);
	return ok;
}

struct changes *changes_new(const char *path, const struct listing_options *listing_options,
			    const struct changes_options *options, json_t *notes,
			    struct rlmd_error *err)
{
	struct changes *changes = xcalloc(1, sizeof *changes);
	auto_free char *index = NULL;

	changes->listing_options = *listing_options;
	changes->listing_options.recurse_submodules = false;
	changes->listing_options.tracked_only = !options->untracked;
	changes->listing_options.open_all = true;
	changes->options = *options;
	if (!open_repository(changes, path, notes, err)) {
		changes_free(changes);
		return NULL;
	}
	if (changes->other)
		return changes;
	index = xasprintf("%s/index", changes->repository->git);
	if (lstat(index, &changes->index_stat))
		changes->index_stat = (struct stat){0};
	changes->listing = listing_new(path, &changes->listing_options, notes, err);
	if (changes->listing)
		return changes;
	changes_free(changes);
	return NULL;
}

static void forget(struct changes *changes)
{
	free(take_pointer(&changes->bytes));
	git_odb_object_free(take_pointer(&changes->object));
	json_decref(take_pointer(&changes->hunks));
}

void changes_free(struct changes *changes)
{
	if (!changes)
		return;
	forget(changes);
	snapshot_free(changes->reading);
	snapshot_free(changes->other);
	listing_free(changes->listing);
	git_index_free(changes->index);
	for (size_t i = 0; i < changes->count; i++) {
		free(changes->files[i].path);
		git_hashsig_free(changes->files[i].signature);
	}
	free(changes->files);
	free(changes->gone);
	git_tree_free(changes->other_tree);
	free(changes->prefix);
	ignores_free(changes->ignores);
	objects_free(changes->objects);
	repository_free(changes->repository);
	free(changes);
}

/* --- the base ---------------------------------------------------------------------------- */

static int compare_files(const void *a, const void *b)
{
	return strcmp(((const struct base_file *)a)->path, ((const struct base_file *)b)->path);
}

static void add_base(struct changes *changes, const struct listing_entry *entry)
{
	changes->files = array_grow(changes->files, changes->count, sizeof *changes->files);
	changes->files[changes->count++] = (struct base_file){xstrdup(entry->path), *entry->id,
							      entry->executable};
}

/* One step; what cannot be read of it counts as not there, and is told. False: it has too much. */
static bool read_base(struct changes *changes, struct listing_entry *ret)
{
	if (snapshot_next(changes->reading, ret)) {
		if (ret->kind != LISTING_PASSED && ret->kind != LISTING_SUBMODULE &&
		    ret->kind != LISTING_UNREADABLE)
			add_base(changes, ret);
		if (ret->kind != LISTING_UNREADABLE)
			ret->kind = LISTING_PASSED;
		return true;
	}
	if (snapshot_failed(changes->reading, &changes->error))
		return false;
	snapshot_free(take_pointer(&changes->reading));
	if (changes->count)
		qsort(changes->files, changes->count, sizeof *changes->files, compare_files);
	*ret = (struct listing_entry){.kind = LISTING_PASSED, .fd = -1};
	return true;
}

static struct base_file *find_base(struct changes *changes, const char *path)
{
	struct base_file wanted = {.path = (char *)path};

	return changes->count ? bsearch(&wanted, changes->files, changes->count, sizeof wanted,
					compare_files)
			      : NULL;
}

/* --- what became of a file ----------------------------------------------------------------- */

/* Whether the file is as it was when the index was written, by git's own marks; not where it may
 * have been changed in the same moment. */
static bool is_untouched(const struct changes *changes, int fd, const git_index_entry *tracked)
{
	struct stat st;
	int64_t index = changes->index_stat.st_mtim.tv_sec;

	return !fstat(fd, &st) && (uint32_t)st.st_size == tracked->file_size &&
	       (int32_t)st.st_mtim.tv_sec == tracked->mtime.seconds &&
	       (uint32_t)st.st_mtim.tv_nsec == tracked->mtime.nanoseconds &&
	       (uint32_t)st.st_ino == tracked->ino && st.st_mtim.tv_sec < index;
}

static bool read_file(struct changes *changes, int fd, struct rlmd_text *ret)
{
	struct stat st;
	size_t size = 0;

	if (fstat(fd, &st) || (size_t)st.st_size > changes->options.max_file_size)
		return false;
	changes->bytes = xcalloc((size_t)st.st_size + 1, 1);
	while (size < (size_t)st.st_size) {
		ssize_t got = pread(fd, changes->bytes + size, (size_t)st.st_size - size,
				    (off_t)size);

		if (got <= 0)
			break;
		size += (size_t)got;
	}
	*ret = text_from(changes->bytes, size);
	return true;
}

static bool is_same(struct rlmd_text text, const git_oid *id)
{
	git_oid own;

	return !git_odb_hash(&own, text.bytes, text.size, GIT_OBJECT_BLOB) &&
	       git_oid_equal(&own, id);
}

static void compare_lines(struct changes *changes, const struct base_file *base,
			  struct listing_entry *entry)
{
	git_odb_object *object = NULL;
	size_t size = 0;

	if (base)
		object = objects_read(changes->objects, &base->id, changes->options.max_file_size,
				      &size);
	if (base && !object)
		changes->hunks = json_make_array();
	else
		changes->hunks = hunks_between(object ? objects_text(object) : text_of(""),
					       entry->text);
	git_odb_object_free(object);
	entry->hunks = changes->hunks;
}

static bool is_unchanged(const struct changes *changes, const struct base_file *base,
			 const struct listing_entry *entry)
{
	if (!base)
		return false;
	if (entry->id)
		return git_oid_equal(&base->id, entry->id);
	return entry->tracked && git_oid_equal(&base->id, &entry->tracked->id) &&
	       (entry->fd < 0 || is_untouched(changes, entry->fd, entry->tracked));
}

static bool take_text(struct changes *changes, struct listing_entry *entry)
{
	size_t size;

	if (entry->fd >= 0)
		return read_file(changes, entry->fd, &entry->text);
	changes->object = objects_read(changes->objects, entry->id, changes->options.max_file_size,
				       &size);
	if (!changes->object) {
		entry->kind = size > changes->options.max_file_size ? LISTING_LARGE
								    : LISTING_UNREADABLE;
		return false;
	}
	entry->text = objects_text(changes->object);
	return true;
}

/* --- renames and modes ---------------------------------------------------------------------- */

static bool is_left_out(struct changes *changes, const char *path);

/* Whether the new side has no file of that path. */
static bool is_gone(struct changes *changes, const char *path)
{
	auto_free char *whole = xasprintf("%s%s", changes->prefix, path);
	auto_free char *full = NULL;
	git_tree_entry *entry = NULL;
	struct stat st;

	if (changes->other_tree && git_tree_entry_bypath(&entry, changes->other_tree, whole))
		return true;
	git_tree_entry_free(entry);
	if (changes->other_tree)
		return false;
	full = xasprintf("%s/%s", listing_root(changes->listing), path);
	return lstat(full, &st) && !is_left_out(changes, path);
}

static void find_gone(struct changes *changes)
{
	changes->gone = xcalloc(changes->count + 1, sizeof(struct base_file *));
	for (size_t i = 0; i < changes->count; i++)
		if (!changes->files[i].met && is_gone(changes, changes->files[i].path))
			changes->gone[changes->gone_count++] = &changes->files[i];
}

static git_hashsig *sign(struct rlmd_text text)
{
	git_hashsig *signature = NULL;

	return text.size && !git_hashsig_create(&signature, text.bytes, text.size,
						GIT_HASHSIG_SMART_WHITESPACE)
		       ? signature
		       : NULL;
}

static const git_hashsig *signature_of(struct changes *changes, struct base_file *file)
{
	git_odb_object *object;
	size_t size;

	if (file->signed_)
		return file->signature;
	file->signed_ = true;
	object = objects_read(changes->objects, &file->id, SIGNED_SIZE_MAX, &size);
	if (object)
		file->signature = sign(objects_text(object));
	git_odb_object_free(object);
	return file->signature;
}

/* The one that is most like it, by at least a half, as git has it. */
static struct base_file *find_like(struct changes *changes, struct rlmd_text text)
{
	git_hashsig *own = text.size <= SIGNED_SIZE_MAX ? sign(text) : NULL;
	struct base_file *best = NULL;
	int most = LIKE_PERCENT - 1;

	for (size_t i = 0; own && i < changes->gone_count && i < GONE_MAX; i++) {
		struct base_file *file = changes->gone[i];
		const git_hashsig *other = file->met ? NULL : signature_of(changes, file);
		int like = other ? git_hashsig_compare(own, other) : -1;

		if (like > most) {
			most = like;
			best = file;
		}
	}
	git_hashsig_free(own);
	return best;
}

/* The earlier name of a new file; NULL: it is new. */
static struct base_file *find_renamed(struct changes *changes, struct rlmd_text text)
{
	git_oid own;

	if (!changes->gone)
		find_gone(changes);
	if (!changes->gone_count || git_odb_hash(&own, text.bytes, text.size, GIT_OBJECT_BLOB))
		return NULL;
	for (size_t i = 0; i < changes->gone_count && text.size; i++)
		if (!changes->gone[i]->met && git_oid_equal(&changes->gone[i]->id, &own))
			return changes->gone[i];
	return find_like(changes, text);
}

/* A hunk that tells what no line shows; the first line stands for it where there is one. */
static void tell(struct changes *changes, struct listing_entry *entry, bool first, char *text)
{
	auto_free char *words = text;
	json_t *pairs = first ? json_make("[[i, i]]", 1, 1) : json_make_array();

	if (!changes->hunks)
		changes->hunks = json_make_array();
	json_insert(changes->hunks, 0,
		    json_make("{s: i, s: i, s: o, s: o}", "start", 1, "end", first ? 1 : 0, "text",
			      json_from_text(text_of(words)), "changed", pairs));
	entry->hunks = changes->hunks;
}

static bool is_executable(const struct changes *changes, const struct listing_entry *entry)
{
	struct stat st;

	if (entry->id)
		return entry->executable;
	if (entry->fd >= 0 && !changes->repository->modeless && !fstat(entry->fd, &st))
		return st.st_mode & S_IXUSR;
	return entry->tracked && entry->tracked->mode == GIT_FILEMODE_BLOB_EXECUTABLE;
}

static void tell_mode(struct changes *changes, struct listing_entry *entry, bool now)
{
	tell(changes, entry, true,
	     xasprintf("old mode 100%s\nnew mode 100%s\n", now ? "644" : "755",
		       now ? "755" : "644"));
}

static void judge(struct changes *changes, struct listing_entry *entry)
{
	struct base_file *base = find_base(changes, entry->path), *renamed = NULL;
	bool now = entry->kind == LISTING_FILE && is_executable(changes, entry);
	bool mode = base && entry->kind == LISTING_FILE && now != base->executable;

	if (base)
		base->met = true;
	if (!mode && is_unchanged(changes, base, entry)) {
		entry->kind = LISTING_PASSED;
		return;
	}
	entry->status = base                          ? LISTER_MODIFIED
			: entry->tracked || entry->id ? LISTER_ADDED
						      : LISTER_UNTRACKED;
	if ((entry->kind != LISTING_FILE && entry->fd < 0) || !take_text(changes, entry))
		return;
	entry->fd = -1;
	if (entry->status == LISTER_ADDED && entry->kind == LISTING_FILE)
		renamed = find_renamed(changes, entry->text);
	if (renamed) {
		renamed->met = true;
		entry->status = LISTER_MODIFIED;
		mode = now != renamed->executable;
	}
	if (!mode && base && is_same(entry->text, &base->id))
		entry->kind = LISTING_PASSED;
	else if (entry->kind == LISTING_FILE)
		compare_lines(changes, base ? base : renamed, entry);
	if (mode && entry->kind == LISTING_FILE)
		tell_mode(changes, entry, now);
	if (renamed)
		tell(changes, entry, false,
		     xasprintf("rename from %s\nrename to %s\n", renamed->path, entry->path));
}

/* --- what is gone ----------------------------------------------------------------------------- */

/* A sparse checkout has it, though it is not in the work tree. */
static bool is_left_out(struct changes *changes, const char *path)
{
	auto_free char *prefix = top_prefix(changes->repository->top,
					    listing_root(changes->listing));
	auto_free char *whole = xasprintf("%s%s", prefix, path);
	const git_index_entry *entry;
	struct rlmd_error err;

	if (!changes->index)
		changes->index = repository_index(changes->repository, &err);
	entry = changes->index ? git_index_get_bypath(changes->index, whole, 0) : NULL;
	return entry && entry->flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE;
}

static bool next_deleted(struct changes *changes, struct listing_entry *ret)
{
	while (changes->deleted < changes->count) {
		const struct base_file *file = &changes->files[changes->deleted++];

		if (file->met || (changes->listing && is_left_out(changes, file->path)))
			continue;
		*ret = (struct listing_entry){
			.kind = LISTING_DELETED,
			.path = file->path,
			.fd = -1,
			.status = LISTER_DELETED,
		};
		return true;
	}
	return false;
}

bool changes_next(struct changes *changes, struct listing_entry *ret)
{
	forget(changes);
	if (changes->reading)
		return read_base(changes, ret);
	if (!(changes->other ? snapshot_next(changes->other, ret)
			     : listing_next(changes->listing, ret)))
		return !(changes->other && snapshot_failed(changes->other, &changes->error)) &&
		       next_deleted(changes, ret);
	if (ret->kind != LISTING_PASSED && ret->kind != LISTING_SUBMODULE &&
	    ret->kind != LISTING_UNREADABLE && ret->kind != LISTING_SPECIAL)
		judge(changes, ret);
	return true;
}

const struct ignores *changes_ignores(const struct changes *changes)
{
	return changes->ignores;
}

bool changes_failed(const struct changes *changes, struct rlmd_error *err)
{
	if (changes->error.kind)
		*err = changes->error;
	return changes->error.kind;
}
