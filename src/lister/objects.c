#include "lister/objects.h"

#include <dirent.h>
#include <fcntl.h>
#if __has_include(<git2/sys/errors.h>)
#include <git2/sys/errors.h> /* libgit2 1.8 and later: git_error_set_str() */
#endif
#include <git2/sys/odb_backend.h>
#include <git2/sys/refdb_backend.h>
#include <git2/sys/repository.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "lister/refs.h"

/* Bytes: more than a million entries, each of which is a struct of libgit2's. */
enum { TREE_MAX = 64 << 20, SMALL = 1024 };

struct objects {
	git_repository *repository; /* owned: with nothing but these two */
	git_odb *odb;               /* owned */
	git_oid small[SMALL];       /* trees that are known to be no larger than TREE_MAX */
	bool has_alternates;        /* which are not read */
	bool reftable;
};

/* Only files and directories: what is a link leads elsewhere, and a FIFO would be waited for. */
static bool is_plain(int parent, const char *name, unsigned depth)
{
	auto_close int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool plain = directory;

	if (!directory)
		return false;
	while (plain && (entry = readdir(directory))) {
		struct stat st;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (entry->d_type == DT_UNKNOWN &&
		    !fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			plain = S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
		else
			plain = entry->d_type == DT_REG || entry->d_type == DT_DIR;
		if (plain && entry->d_type == DT_DIR && depth)
			plain = is_plain(fd, entry->d_name, depth - 1);
	}
	fd = -1;
	closedir(directory);
	return plain;
}

static bool check_objects(const struct repository *repository, struct rlmd_error *err)
{
	auto_close int common = open(repository->common, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return is_plain(common, "objects", 2) ||
	       error_set(err, RLMD_ERROR_INPUT,
			 "%s/objects cannot be read, or has links or FIFOs in it, which are not "
			 "followed; allow-alternates allows that",
			 repository->common);
}

/* Alternates are followed by git_odb_open() alone. */
static bool open_odb(struct objects *objects, const char *path, bool alternates)
{
	git_odb_backend *loose, *pack;

	if (alternates)
		return !git_odb_open(&objects->odb, path);
	if (git_odb_new(&objects->odb) || git_odb_backend_loose(&loose, path, -1, 0, 0, 0) ||
	    git_odb_add_backend(objects->odb, loose, 1) || git_odb_backend_pack(&pack, path))
		return false;
	return !git_odb_add_backend(objects->odb, pack, 2);
}

/* A repository in memory alone: with these objects, these names, and no configuration. */
static bool put_together(struct objects *objects, const struct repository *repository)
{
	git_config *config = NULL;
	git_refdb *refdb = NULL;
	git_refdb_backend *refs = NULL;
	bool ok = !git_repository_new(&objects->repository) && !git_config_new(&config) &&
		  !git_refdb_new(&refdb, objects->repository);

	if (ok) {
		refs = refs_new(repository);
		ok = !git_refdb_set_backend(refdb, refs) &&
		     !git_repository_set_refdb(objects->repository, refdb) &&
		     !git_repository_set_odb(objects->repository, objects->odb) &&
		     !git_repository_set_config(objects->repository, config);
	}
	git_refdb_free(refdb);
	git_config_free(config);
	return ok;
}

struct objects *objects_open(const struct repository *repository, bool alternates,
			     struct rlmd_error *err)
{
	struct objects *objects;
	auto_free char *path = xasprintf("%s/objects", repository->common);
	auto_free char *names = xasprintf("%s/info/alternates", path);

	if (!alternates && !check_objects(repository, err))
		return NULL;
	objects = xcalloc(1, sizeof *objects);
	git_libgit2_init();
	objects->has_alternates = !alternates && !access(names, F_OK);
	objects->reftable = repository->reftable;
	if (open_odb(objects, path, alternates) && put_together(objects, repository))
		return objects;
	repository_fail(err, "cannot read the repository's objects");
	objects_free(objects);
	return NULL;
}

void objects_free(struct objects *objects)
{
	if (!objects)
		return;
	git_repository_free(objects->repository);
	git_odb_free(objects->odb);
	free(objects);
	git_libgit2_shutdown();
}

static void advise(const struct objects *objects, const char *advice, struct rlmd_error *err)
{
	size_t size = strlen(err->text);

	if (objects->reftable)
		advice = "its names are kept in a reftable, which is not read: give the commit's "
			 "number, or run: git refs migrate --ref-format=files";
	if (objects->has_alternates)
		advice = "the repository's alternates are not read: allow-alternates allows that";
	if (advice)
		snprintf(err->text + size, sizeof err->text - size, "; %s", advice);
}

static bool fail(const struct objects *objects, const char *revision, const char *advice,
		 struct rlmd_error *err)
{
	char safe[100];

	repository_fail(err, "git");
	text_escape(text_of(revision), safe, sizeof safe);
	error_context(err, "the revision %s", safe);
	advise(objects, advice, err);
	return false;
}

/* NULL: there is none. A name is looked up here, for libgit2 1.5 leaks that of a missing object. */
static git_object *look_up(const struct objects *objects, const char *revision)
{
	git_reference *name = NULL;
	git_object *found = NULL;

	if (*revision == '-')
		return NULL;
	if (git_reference_dwim(&name, objects->repository, revision))
		git_revparse_single(&found, objects->repository, revision);
	else
		git_object_lookup(&found, objects->repository, git_reference_target(name),
				  GIT_OBJECT_ANY);
	git_reference_free(name);
	return found;
}

/* Those that come again and again are not asked for anew: a header is read from the disk each time.
 */
static bool is_small(struct objects *objects, const git_oid *id)
{
	git_oid *known = &objects->small[(id->id[0] | id->id[1] << 8) % SMALL];
	git_object_t type;
	size_t size;

	if (git_oid_equal(known, id))
		return true;
	if (git_odb_read_header(&size, &type, objects->odb, id))
		return false;
	if (size > TREE_MAX) {
		git_error_set_str(GIT_ERROR_TREE, "a tree is larger than 64 MiB");
		return false;
	}
	*known = *id;
	return true;
}

git_tree *objects_subtree(struct objects *objects, const git_oid *id)
{
	git_tree *tree = NULL;

	if (!is_small(objects, id))
		return NULL;
	return git_tree_lookup(&tree, objects->repository, id) ? NULL : tree;
}

/* That of a commit, or of a tag; NULL: it has none that can be read. */
static git_object *tree_of(struct objects *objects, const git_object *found)
{
	git_object *commit = NULL, *tree = NULL;
	git_oid id;

	if (git_object_peel(&commit, found, GIT_OBJECT_COMMIT))
		return git_object_peel(&tree, found, GIT_OBJECT_TREE) ? NULL : tree;
	id = *git_commit_tree_id((const git_commit *)commit);
	git_object_free(commit);
	return (git_object *)objects_subtree(objects, &id);
}

git_object *objects_find(struct objects *objects, const char *revision, struct rlmd_error *err)
{
	git_object *found = look_up(objects, revision), *peeled;

	if (!found) {
		fail(objects, revision, "in a shallow clone, fetch it first", err);
		return NULL;
	}
	if (git_object_type(found) == GIT_OBJECT_BLOB)
		return found;
	peeled = tree_of(objects, found);
	if (!peeled)
		fail(objects, revision, NULL, err);
	git_object_free(found);
	return peeled;
}

static bool find_commit(const struct objects *objects, const char *revision, git_oid *ret,
			struct rlmd_error *err)
{
	git_object *found = look_up(objects, revision), *commit = NULL;
	bool ok = found && !git_object_peel(&commit, found, GIT_OBJECT_COMMIT);

	if (ok)
		git_oid_cpy(ret, git_object_id(commit));
	else
		fail(objects, revision, "in a shallow clone, fetch it first", err);
	git_object_free(found);
	git_object_free(commit);
	return ok;
}

git_object *objects_merge_base(struct objects *objects, const char *one, const char *other,
			       struct rlmd_error *err)
{
	char text[GIT_OID_HEXSZ + 1];
	git_oid a, b, base;

	if (!find_commit(objects, one, &a, err) || !find_commit(objects, other, &b, err))
		return NULL;
	if (git_merge_base(&base, objects->repository, &a, &b)) {
		fail(objects, one,
		     "the merge base is not there: in a shallow clone run "
		     "git fetch --unshallow, or compare with it directly",
		     err);
		return NULL;
	}
	return objects_find(objects, git_oid_tostr(text, sizeof text, &base), err);
}

git_odb_object *objects_read(const struct objects *objects, const git_oid *id, size_t limit,
			     size_t *ret_size)
{
	git_odb_object *object = NULL;
	git_object_t type;

	*ret_size = 0;
	if (git_odb_read_header(ret_size, &type, objects->odb, id) || type != GIT_OBJECT_BLOB ||
	    *ret_size > limit)
		return NULL;
	return git_odb_read(&object, objects->odb, id) ? NULL : object;
}

struct rlmd_text objects_text(git_odb_object *object)
{
	return text_from(git_odb_object_data(object), git_odb_object_size(object));
}
