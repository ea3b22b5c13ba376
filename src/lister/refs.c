#include "lister/refs.h"

#include <fcntl.h>
#include <git2/sys/refs.h>
#if __has_include(<git2/sys/errors.h>)
#include <git2/sys/errors.h> /* libgit2 1.8 and later: git_error_set_str() */
#endif
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "source/nofollow.h"

enum { REF_MAX = 64 << 10, PACKED_MAX = 256 << 20 };

struct refs {
	git_refdb_backend backend; /* first: libgit2 has it */
	int git, common;           /* owned, or -1 */
	char *packed;              /* owned: packed-refs; NULL: there are none */
	size_t packed_size;
};

static struct refs *refs_of(git_refdb_backend *backend)
{
	return (struct refs *)backend;
}

/* "ref: NAME", or a number and maybe more. */
static int parse_ref(git_reference **ret, const char *name, const char *bytes, size_t size)
{
	struct rlmd_text text = text_trim(text_from(bytes, size));
	git_oid id;

	if (text_starts(text, "ref:")) {
		auto_free char *target = text_copy(text_trim(text_slice(text, 4, text.size)));

		*ret = git_reference__alloc_symbolic(name, target);
		return *ret ? 0 : -1;
	}
	if (text.size < GIT_OID_HEXSZ || git_oid_fromstrn(&id, text.bytes, GIT_OID_HEXSZ))
		return GIT_ENOTFOUND;
	*ret = git_reference__alloc(name, &id, NULL);
	return *ret ? 0 : -1;
}

/* "NUMBER NAME", one a line. */
static int find_packed(const struct refs *refs, git_reference **ret, const char *name)
{
	struct rlmd_text rest = text_from(refs->packed, refs->packed_size);
	size_t size = strlen(name);

	while (rest.size) {
		size_t end = text_line_end(rest, 0);
		struct rlmd_text line = text_trim(text_slice(rest, 0, end));

		rest = text_slice(rest, end, rest.size);
		if (line.size == GIT_OID_HEXSZ + 1 + size &&
		    !memcmp(line.bytes + GIT_OID_HEXSZ + 1, name, size))
			return parse_ref(ret, name, line.bytes, GIT_OID_HEXSZ);
	}
	return GIT_ENOTFOUND;
}

static bool is_of_worktree(const char *name)
{
	return strncmp(name, "refs/", 5) != 0 || !strncmp(name, "refs/bisect/", 12) ||
	       !strncmp(name, "refs/worktree/", 14) || !strncmp(name, "refs/rewritten/", 15);
}

static int lookup(git_reference **ret, git_refdb_backend *backend, const char *name)
{
	const struct refs *refs = refs_of(backend);
	int directory = is_of_worktree(name) ? refs->git : refs->common, end = GIT_ENOTFOUND;
	size_t size;
	auto_free char *bytes = directory < 0 ? NULL
					      : nofollow_read(directory, name, REF_MAX, &size);

	if (bytes)
		end = parse_ref(ret, name, bytes, size);
	if (end == GIT_ENOTFOUND)
		end = find_packed(refs, ret, name);
	if (end == GIT_ENOTFOUND)
		git_error_set_str(GIT_ERROR_REFERENCE, "there is no such revision");
	return end;
}

static int exists(int *ret, git_refdb_backend *backend, const char *name)
{
	git_reference *found = NULL;
	int end = lookup(&found, backend, name);

	*ret = !end;
	git_reference_free(found);
	return end == GIT_ENOTFOUND ? 0 : end;
}

/* Refuses forms that need more than names, as ":/text" and "@{1}". */
static int refuse(void)
{
	git_error_set_str(GIT_ERROR_REFERENCE, "revisions by message or by reflog are not known");
	return GIT_ERROR;
}

static int iterate(git_reference_iterator **ret, git_refdb_backend *backend, const char *glob)
{
	(void)ret;
	(void)backend;
	(void)glob;
	return refuse();
}

static int read_log(git_reflog **ret, git_refdb_backend *backend, const char *name)
{
	(void)ret;
	(void)backend;
	(void)name;
	return refuse();
}

/* Refuses all changes: rlmd makes none, but libgit2 wants these functions to be there. */
static int do_not_write(git_refdb_backend *backend, const git_reference *ref, int force,
			const git_signature *who, const char *message, const git_oid *old,
			const char *old_target)
{
	(void)backend, (void)ref, (void)force, (void)who, (void)message, (void)old;
	(void)old_target;
	return refuse();
}

static int do_not_rename(git_reference **ret, git_refdb_backend *backend, const char *old_name,
			 const char *new_name, int force, const git_signature *who,
			 const char *message)
{
	(void)ret, (void)backend, (void)old_name, (void)new_name, (void)force, (void)who;
	(void)message;
	return refuse();
}

static int do_not_delete(git_refdb_backend *backend, const char *name, const git_oid *old,
			 const char *old_target)
{
	(void)backend, (void)name, (void)old, (void)old_target;
	return refuse();
}

static int do_not_log(git_refdb_backend *backend, const char *name)
{
	(void)backend, (void)name;
	return refuse();
}

static int do_not_write_log(git_refdb_backend *backend, git_reflog *log)
{
	(void)backend, (void)log;
	return refuse();
}

static int do_not_rename_log(git_refdb_backend *backend, const char *old_name, const char *new_name)
{
	(void)backend, (void)old_name, (void)new_name;
	return refuse();
}

static int has_log(git_refdb_backend *backend, const char *name)
{
	(void)backend;
	(void)name;
	return 0;
}

static void release(git_refdb_backend *backend)
{
	struct refs *refs = refs_of(backend);

	if (refs->git >= 0)
		close(refs->git);
	if (refs->common >= 0)
		close(refs->common);
	free(refs->packed);
	free(refs);
}

git_refdb_backend *refs_new(const struct repository *repository)
{
	struct refs *refs = xcalloc(1, sizeof *refs);

	git_refdb_init_backend(&refs->backend, GIT_REFDB_BACKEND_VERSION);
	refs->backend.exists = exists;
	refs->backend.lookup = lookup;
	refs->backend.iterator = iterate;
	refs->backend.has_log = has_log;
	refs->backend.reflog_read = read_log;
	refs->backend.write = do_not_write;
	refs->backend.rename = do_not_rename;
	refs->backend.del = do_not_delete;
	refs->backend.ensure_log = do_not_log;
	refs->backend.reflog_write = do_not_write_log;
	refs->backend.reflog_rename = do_not_rename_log;
	refs->backend.reflog_delete = do_not_log;
	refs->backend.free = release;
	refs->git = open(repository->git, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	refs->common = open(repository->common, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (refs->common >= 0)
		refs->packed = nofollow_read(refs->common, "packed-refs", PACKED_MAX,
					     &refs->packed_size);
	return &refs->backend;
}
