/*
 * A stranger's repository as libgit2 sees it, as the program that lists files reads it: the
 * first byte says whether the rest is a tree, a commit, a loose object, a pack (its index behind
 * it, from the place that two bytes tell) or the index of a work tree.
 *
 * What it finds in libgit2 is a matter of libgit2's: that program has no keys, and may die. Up to
 * version 1.9 loose objects that are cut short, or whose size is a lie, hang or break it
 * (docs/security.md): fuzzing would find that alone, so these are left to system/strange_git.
 */
#include <git2.h>
#include <git2/sys/mempack.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "lister/objects.h"
#include "lister/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char name[] = "0123456789abcdef0123456789abcdef01234567";
static char place[] = "/tmp/rlmd-fuzz-XXXXXX";

enum {
	ENTRIES_MAX = 1000,
	LOOSE_OBJECTS_ARE_SAFE = LIBGIT2_VER_MAJOR > 1 || LIBGIT2_VER_MINOR > 9,
};

static void at(const char *path, struct rlmd_text text)
{
	auto_free char *whole = xasprintf("%s/%s", place, path);
	struct rlmd_error err;

	file_write(whole, text, &err);
}

static const char *const rooms[] = {"refs", "objects/pack", "objects/01", "objects"};
static const char *const files[] = {
	"objects/01/23456789abcdef0123456789abcdef01234567", "index",
	"objects/pack/pack-0123456789abcdef0123456789abcdef01234567.idx",
	"objects/pack/pack-0123456789abcdef0123456789abcdef01234567.pack"};

static void begin(void)
{
	static const char *const made[] = {"objects", "objects/01", "objects/pack", "refs"};

	if (!mkdtemp(place))
		abort();
	for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
		auto_free char *path = xasprintf("%s/%s", place, made[i]);

		mkdir(path, 0700);
	}
}

static void end(void)
{
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		auto_free char *path = xasprintf("%s/%s", place, files[i]);

		unlink(path);
	}
	for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
		auto_free char *path = xasprintf("%s/%s", place, rooms[i]);

		rmdir(path);
	}
	rmdir(place);
	for (size_t i = sizeof place - 7; i < sizeof place - 1; i++)
		place[i] = 'X';
}

/* As the program does it: the files that it has, and their bytes. */
static void read_tree(struct objects *objects)
{
	struct selection *selection = selection_new(&(struct selection_options){0}, NULL);
	struct rlmd_error err;
	git_object *found = objects_find(objects, name, &err);
	struct listing_entry entry;
	struct snapshot *snapshot;
	size_t size;

	if (found && git_object_type(found) == GIT_OBJECT_TREE) {
		snapshot = snapshot_new(objects, (git_tree *)found, "", selection);
		for (int i = 0; i < ENTRIES_MAX && snapshot_next(snapshot, &entry); i++)
			git_odb_object_free(objects_read(objects, entry.id, 1 << 20, &size));
		snapshot_free(snapshot);
	} else {
		git_object_free(found);
	}
	selection_free(selection);
}

static void read_index(const struct repository *repository)
{
	struct rlmd_error err;
	git_index *index = repository_index(repository, &err);

	git_index_free(index);
}

static void write_pack(struct rlmd_text text)
{
	size_t middle = text.size < 2
				? 0
				: (uint8_t)text.bytes[0] | (size_t)(uint8_t)text.bytes[1] << 8;

	text = text_slice(text, text.size < 2 ? text.size : 2, text.size);
	if (middle > text.size)
		middle = text.size;
	at(files[3], text_slice(text, 0, middle));
	at(files[2], text_slice(text, middle, text.size));
}

static void read_raw(struct rlmd_text text, git_object_t type)
{
	git_object *object = NULL;
#if LIBGIT2_VER_MAJOR == 1 && LIBGIT2_VER_MINOR >= 6 && defined(GIT_EXPERIMENTAL_SHA256)
	(void)text, (void)type;
#else
	git_odb *odb = NULL;
	git_repository *repository = NULL;
	git_odb_backend *memory = NULL;
	git_oid id;

	if (!git_odb_new(&odb) && !git_mempack_new(&memory) &&
	    !git_odb_add_backend(odb, memory, 1) &&
	    !git_odb_write(&id, odb, text.bytes ? text.bytes : "", text.size, type) &&
	    !git_repository_wrap_odb(&repository, odb))
		git_object_lookup(&object, repository, &id, type);
	git_object_free(object);
	git_repository_free(repository);
	git_odb_free(odb);
#endif
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rlmd_text text = text_from(data + 1, size ? size - 1 : 0);
	struct repository repository = {place, place, place, NULL, false, false};
	struct objects *objects;
	struct rlmd_error err;

	if (!size)
		return 0;
	git_libgit2_init();
	begin();
	switch (*data) {
	case 't':
		read_raw(text, GIT_OBJECT_TREE);
		break;
	case 'c':
		read_raw(text, GIT_OBJECT_COMMIT);
		break;
	case 'l':
		if (LOOSE_OBJECTS_ARE_SAFE)
			at(files[0], text);
		break;
	case 'p':
		write_pack(text);
		break;
	case 'i':
		at(files[1], text);
		read_index(&repository);
		break;
	}
	objects = objects_open(&repository, false, &err);
	if (objects)
		read_tree(objects);
	objects_free(objects);
	end();
	git_libgit2_shutdown();
	return 0;
}
