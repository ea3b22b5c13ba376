#include "source/repository.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "source/beneath.h"
#include "source/repo_config.h"
#include "source/user_config.h"

enum {
	GITFILE_MAX = 64 << 10,
	CONFIG_MAX = 1 << 20,
};

#define INDEX_MAX ((off_t)1 << 30) /* bytes: some ten million files */

bool repository_fail(struct rlmd_error *err, const char *what)
{
	const git_error *error = git_error_last();
	char safe[160];

	text_escape(text_of(error ? error->message : "libgit2 does not say why"), safe,
		    sizeof safe);
	return error_set(err, RLMD_ERROR_INPUT, "%s: %s", what, safe);
}

/* --- where it is ---------------------------------------------------------------------- */

/* A directory with a HEAD, objects and refs, the last two maybe in the one that it shares. */
static bool is_repository(int fd)
{
	struct stat st;

	if (fd < 0 || fstatat(fd, "HEAD", &st, AT_SYMLINK_NOFOLLOW))
		return false;
	if (!fstatat(fd, "commondir", &st, AT_SYMLINK_NOFOLLOW))
		return true;
	return !fstatat(fd, "objects", &st, 0) && S_ISDIR(st.st_mode) &&
	       !fstatat(fd, "refs", &st, 0) && S_ISDIR(st.st_mode);
}

/* One path in a file of a line, absolute and without links, new; NULL: there is none. */
static char *read_path(int directory, const char *name, const char *prefix, const char *base)
{
	size_t size;
	auto_free char *bytes = beneath_read(directory, name, GITFILE_MAX, &size);
	auto_free char *path = NULL;
	struct rlmd_text text;

	if (!bytes || strlen(bytes) != size || !text_starts(text_of(bytes), prefix))
		return NULL;
	text = text_trim(text_of(bytes + strlen(prefix)));
	if (!text.size)
		return NULL;
	path = text_copy(text);
	if (*path != '/') {
		char *whole = xasprintf("%s/%s", base, path);

		free(path);
		path = whole;
	}
	return realpath(path, NULL);
}

bool repository_begins_at(int directory)
{
	auto_close int git = openat(directory, ".git", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_free char *base = NULL, *place = NULL, *name = NULL;

	if (git >= 0)
		return is_repository(git);
	name = xasprintf("/proc/self/fd/%d", directory);
	base = realpath(name, NULL);
	place = base ? read_path(directory, ".git", "gitdir:", base) : NULL;
	if (place)
		git = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return is_repository(git);
}

static bool has_git(const char *directory, dev_t device)
{
	auto_close int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && st.st_dev == device &&
	       !fstatat(fd, ".git", &st, AT_SYMLINK_NOFOLLOW) && repository_begins_at(fd);
}

/* A file ".git", whose repository is not there: a work tree, of which nobody knows the rules. */
static bool refuse_broken(const char *top, dev_t device, struct rlmd_error *err)
{
	auto_free char *link = xasprintf("%s/.git", top);
	struct stat st;
	char safe[200];

	if (lstat(link, &st) || !S_ISREG(st.st_mode) || st.st_dev != device)
		return false;
	text_escape(text_of(link), safe, sizeof safe);
	error_set(
		err, RLMD_ERROR_INPUT,
		"%s leads to no repository, so that nobody knows which files are ignored: mend it "
		"(git worktree repair), or remove it to have all files",
		safe);
	return true;
}

/* The first directory with a repository, upwards; new, NULL: none in the same file system. */
static bool find_top(const char *path, char **ret, struct rlmd_error *err)
{
	auto_free char *at = realpath(path, NULL);
	struct stat st;

	*ret = NULL;
	if (!at || stat(at, &st))
		return true;
	for (;;) {
		char *slash = strrchr(at, '/');

		if (has_git(at, st.st_dev)) {
			*ret = take_pointer(&at);
			return true;
		}
		if (refuse_broken(at, st.st_dev, err))
			return false;
		if (!slash || !strcmp(at, "/"))
			return true;
		slash[slash == at] = '\0';
	}
}

/* --- whether it may be believed -------------------------------------------------------- */

static bool refuse_owner(const char *top, uid_t owner, struct rlmd_error *err)
{
	char safe[200];

	text_escape(text_of(top), safe, sizeof safe);
	return error_set(err, RLMD_ERROR_INPUT,
			 "the work tree %s belongs to another user (%u), whose files would decide "
			 "what is read; to allow it: git config --global --add safe.directory %s",
			 safe, owner, safe);
}

static bool is_ours(const char *path, uid_t *ret_owner)
{
	const char *sudo = geteuid() ? NULL : getenv("SUDO_UID");
	struct stat st;

	if (lstat(path, &st))
		return true;
	*ret_owner = st.st_uid;
	return st.st_uid == geteuid() ||
	       (sudo && *sudo && st.st_uid == (uid_t)strtoul(sudo, NULL, 10));
}

static bool check_owner(const struct repository *repo, const struct user_config *user,
			struct rlmd_error *err)
{
	auto_free char *link = xasprintf("%s/.git", repo->top);
	uid_t owner;

	return (is_ours(repo->top, &owner) && is_ours(link, &owner) &&
		is_ours(repo->git, &owner)) ||
	       user_config_trusts(user, repo->top) || refuse_owner(repo->top, owner, err);
}

static bool refuse_link(const struct repository *repo, struct rlmd_error *err)
{
	char top[200], git[200];

	text_escape(text_of(repo->top), top, sizeof top);
	text_escape(text_of(repo->git ? repo->git : "nowhere"), git, sizeof git);
	return error_set(err, RLMD_ERROR_INPUT,
			 "%s/.git leads to %s, which does not say that this is a work tree of it; "
			 "run: git -C %s worktree repair, or: git -C %s config core.worktree %s",
			 top, git, top, top, top);
}

/* A work tree beside the first: both name each other, and the repository holds what is of it. */
static bool is_linked(struct repository *repo, int git)
{
	auto_free char *back = read_path(git, "gitdir", "", repo->git);
	auto_free char *own = xasprintf("%s/.git", repo->top);
	auto_free char *room = NULL;

	free(repo->common);
	repo->common = read_path(git, "commondir", "", repo->git);
	room = xasprintf("%s/worktrees/", repo->common ? repo->common : "");
	return repo->common && back && !strcmp(back, own) &&
	       text_starts(text_of(repo->git), room) && !strchr(repo->git + strlen(room), '/');
}

/* A submodule, or a repository that was told to live elsewhere: its configuration names the tree.
 */
static bool is_named(const struct repository *repo, const struct repo_config *config)
{
	auto_free char *path = NULL, *real = NULL;

	if (!config->worktree)
		return false;
	path = *config->worktree == '/' ? xstrdup(config->worktree)
					: xasprintf("%s/%s", repo->git, config->worktree);
	real = realpath(path, NULL);
	return real && !strcmp(real, repo->top);
}

static void read_config(int directory, const char *name, struct repo_config *config)
{
	size_t size;
	auto_free char *bytes = beneath_read(directory, name, CONFIG_MAX, &size);

	if (bytes)
		repo_config_read(config, text_from(bytes, size));
}

/* Of a worktree, whose directory says nothing, it is that of the repository. */
static void read_configs(const struct repository *repo, struct repo_config *config)
{
	auto_close int common = open(repo->common, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int git = open(repo->git, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	read_config(common, "config", config);
	read_config(git, "config.worktree", config);
}

/* Whether ".git" and what it leads to belong together. `direct`: it is the repository. */
static bool check_link(struct repository *repo, bool direct, struct repo_config *config)
{
	auto_close int git = open(repo->git, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	bool shared = git >= 0 && !fstatat(git, "commondir", &st, AT_SYMLINK_NOFOLLOW);

	if (git < 0 || (shared && direct) || (shared && !is_linked(repo, git)))
		return false;
	read_configs(repo, config);
	return direct || shared || is_named(repo, config);
}

/* --- the whole -------------------------------------------------------------------------- */

static bool refuse_sha256(const struct repository *repo, struct rlmd_error *err)
{
	char top[200];

	text_escape(text_of(repo->top), top, sizeof top);
	return error_set(
		err, RLMD_ERROR_INPUT,
		"%s is a repository with SHA-256 names, which are not read: give a copy of its "
		"files (git -C %s archive HEAD | tar -x -C COPY)",
		top, top);
}

/* What its configuration says of it; `config` is done with. False: it cannot be read. */
static bool take_config(struct repository *repo, struct repo_config *config, struct rlmd_error *err)
{
	bool sha256 = config->sha256;

	if (config->ignored)
		repo->ignored = xasprintf("settings of the repository that name other files or "
					  "programs are not heeded: %s",
					  config->ignored);
	repo->fold = config->fold;
	repo->reftable = config->reftable;
	repo_config_done(config);
	return !sha256 || refuse_sha256(repo, err);
}

static bool settle(struct repository *repo, const struct user_config *user, struct rlmd_error *err)
{
	auto_free char *dot = xasprintf("%s/.git", repo->top);
	auto_close int top = open(repo->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct repo_config config = {0};
	struct stat st = {0};
	bool direct = !lstat(dot, &st) && S_ISDIR(st.st_mode);

	repo->git = direct                ? xstrdup(dot)
		    : S_ISLNK(st.st_mode) ? realpath(dot, NULL)
					  : read_path(top, ".git", "gitdir:", repo->top);
	repo->common = xstrdup(repo->git);
	if (!repo->git)
		return refuse_link(repo, err);
	if (!check_owner(repo, user, err))
		return false;
	if (check_link(repo, direct, &config))
		return take_config(repo, &config, err);
	repo_config_done(&config);
	return refuse_link(repo, err);
}

/* `top` is taken. */
static bool open_at(char *top, struct repository **ret, struct rlmd_error *err)
{
	struct repository *repo = xcalloc(1, sizeof *repo);
	struct user_config user;
	bool ok;

	git_libgit2_init();
	repo->top = top;
	ok = user_config_open(&user, err) && settle(repo, &user, err);
	if (ok) {
		repo->excludes = user_config_path(&user, "core.excludesFile", "ignore");
		repo->attributes = user_config_path(&user, "core.attributesFile", "attributes");
		*ret = repo;
	} else {
		repository_free(repo);
	}
	user_config_done(&user);
	return ok;
}

bool repository_find(const char *path, struct repository **ret, struct rlmd_error *err)
{
	char *top;

	*ret = NULL;
	return find_top(path, &top, err) && (!top || open_at(top, ret, err));
}

/* A repository itself, or a directory in one, which is not ".git"'s; new. */
static char *find_bare(const char *path)
{
	auto_free char *at = realpath(path, NULL);

	while (at) {
		auto_close int fd = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		char *slash = strrchr(at, '/');
		struct stat st;

		if (is_repository(fd) && fstatat(fd, "commondir", &st, AT_SYMLINK_NOFOLLOW))
			return take_pointer(&at);
		if (!slash || !strcmp(at, "/"))
			return NULL;
		slash[slash == at] = '\0';
	}
	return NULL;
}

static bool open_bare(const char *path, struct repository **ret, struct rlmd_error *err)
{
	struct repository *repo = xcalloc(1, sizeof *repo);
	struct repo_config config = {0};
	struct user_config user;
	uid_t owner;
	bool ok;

	git_libgit2_init();
	repo->top = xstrdup(path);
	repo->git = xstrdup(path);
	repo->common = xstrdup(path);
	ok = user_config_open(&user, err) &&
	     (is_ours(path, &owner) || user_config_trusts(&user, path) ||
	      refuse_owner(path, owner, err));
	user_config_done(&user);
	if (ok)
		read_configs(repo, &config);
	ok = ok && take_config(repo, &config, err);
	if (ok)
		*ret = repo;
	else
		repository_free(repo);
	return ok;
}

bool repository_find_any(const char *path, struct repository **ret, struct rlmd_error *err)
{
	auto_free char *bare = NULL;

	if (!repository_find(path, ret, err))
		return false;
	bare = *ret ? NULL : find_bare(path);
	return !bare || open_bare(bare, ret, err);
}

bool repository_at(const char *path, struct repository **ret, struct rlmd_error *err)
{
	auto_free char *top = realpath(path, NULL);
	struct stat st;

	*ret = NULL;
	if (!top || stat(top, &st) || !has_git(top, st.st_dev))
		return true;
	return open_at(take_pointer(&top), ret, err);
}

char *repository_place(const struct repository *repository, const char *path)
{
	auto_free char *real = realpath(path, NULL);
	const char *below = real ? real + strlen(repository->top) : "";

	below += *below == '/';
	return xasprintf("%s%s", below, *below ? "/" : "");
}

void repository_free(struct repository *repo)
{
	if (!repo)
		return;
	free(repo->top);
	free(repo->git);
	free(repo->common);
	free(repo->excludes);
	free(repo->attributes);
	free(repo->ignored);
	free(repo);
	git_libgit2_shutdown();
}

/* Forms of an index that libgit2 does not read, and how to have the usual one. */
static void advise(struct rlmd_error *err)
{
	static const char *const rows[][2] = {
		{"'sdir'", "git sparse-checkout reapply --no-sparse-index"},
		{"'link'", "git update-index --no-split-index"},
	};
	size_t size = strlen(err->text);

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strstr(err->text, rows[i][0]))
			snprintf(err->text + size, sizeof err->text - size, "; run there: %s",
				 rows[i][1]);
}

/* By descriptor, so that it is the file that was looked at. */
git_index *repository_index(const struct repository *repo, struct rlmd_error *err)
{
	auto_close int git = open(repo->git, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	auto_free char *path = NULL;
	git_index *index = NULL;
	struct stat st;

	if (git >= 0 && fstatat(git, "index", &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT) {
		if (git_index_new(&index) < 0)
			repository_fail(err, "no index");
		return index;
	}
	fd = git < 0 ? -1 : beneath_file(git, "index");
	if (fd < 0 || fstat(fd, &st) || st.st_size > INDEX_MAX) {
		error_set(err, RLMD_ERROR_INPUT, "cannot read %s/index: it is no regular file",
			  repo->git);
		return NULL;
	}
	path = access("/proc/self/fd", X_OK) ? xasprintf("%s/index", repo->git)
					     : xasprintf("/proc/self/fd/%d", fd);
	if (!git_index_open(&index, path))
		return index;
	repository_fail(err, "cannot read the index of the work tree");
	error_context(err, "%s", repo->top);
	advise(err);
	return NULL;
}
