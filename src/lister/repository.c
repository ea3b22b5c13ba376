#include "lister/repository.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "lister/repo_config.h"
#include "lister/user_config.h"
#include "source/nofollow.h"
#include "source/top.h"

enum { CONFIG_MAX = 1 << 20 };

#define INDEX_MAX ((off_t)1 << 30) /* bytes: some ten million files */

bool repository_fail(struct rlmd_error *err, const char *what)
{
	const git_error *error = git_error_last();
	char safe[160];

	text_escape(text_of(error ? error->message : "libgit2 does not say why"), safe,
		    sizeof safe);
	return error_set(err, RLMD_ERROR_INPUT, "%s: %s", what, safe);
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

static bool check_owner(const struct repository *repo, struct rlmd_error *err)
{
	auto_free char *link = xasprintf("%s/.git", repo->top);
	uid_t owner;

	return (is_ours(repo->top, &owner) && is_ours(link, &owner) &&
		is_ours(repo->git, &owner)) ||
	       user_config_trusts(repo->top) || refuse_owner(repo->top, owner, err);
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
	auto_free char *back = top_read_path(git, "gitdir", "", repo->git);
	auto_free char *own = xasprintf("%s/.git", repo->top);
	auto_free char *room = NULL;

	free(repo->common);
	repo->common = top_read_path(git, "commondir", "", repo->git);
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
	auto_free char *bytes = nofollow_read(directory, name, CONFIG_MAX, &size);

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

/* Takes the settings of its configuration; `config` is done with. False: it cannot be read. */
static bool take_config(struct repository *repo, struct repo_config *config, struct rlmd_error *err)
{
	bool sha256 = config->sha256;

	if (config->ignored)
		repo->ignored = xasprintf("settings of the repository that name other files or "
					  "programs are not heeded: %s",
					  config->ignored);
	repo->fold = config->fold;
	repo->modeless = config->modeless;
	repo->reftable = config->reftable;
	repo_config_done(config);
	return !sha256 || refuse_sha256(repo, err);
}

static bool settle(struct repository *repo, struct rlmd_error *err)
{
	auto_free char *dot = xasprintf("%s/.git", repo->top);
	auto_close int top = open(repo->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct repo_config config = {0};
	struct stat st = {0};
	bool direct = !lstat(dot, &st) && S_ISDIR(st.st_mode);

	repo->git = direct                ? xstrdup(dot)
		    : S_ISLNK(st.st_mode) ? realpath(dot, NULL)
					  : top_read_path(top, ".git", "gitdir:", repo->top);
	repo->common = xstrdup(repo->git);
	if (!repo->git)
		return refuse_link(repo, err);
	if (!check_owner(repo, err))
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
	bool ok;

	repo->top = top;
	ok = user_config_read(err) && settle(repo, err);
	if (ok)
		*ret = repo;
	else
		repository_free(repo);
	return ok;
}

bool repository_find(const char *path, struct repository **ret, struct rlmd_error *err)
{
	char *top;

	*ret = NULL;
	return top_find(path, &top, err) && (!top || open_at(top, ret, err));
}

/* A repository itself, or a directory in one, which is not ".git"'s; new. */
static char *find_bare(const char *path)
{
	auto_free char *at = realpath(path, NULL);

	while (at) {
		auto_close int fd = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		char *slash = strrchr(at, '/');
		struct stat st;

		if (top_is_repository(fd) && fstatat(fd, "commondir", &st, AT_SYMLINK_NOFOLLOW))
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
	uid_t owner;
	bool ok;

	repo->top = xstrdup(path);
	repo->git = xstrdup(path);
	repo->common = xstrdup(path);
	ok = user_config_read(err) &&
	     (is_ours(path, &owner) || user_config_trusts(path) || refuse_owner(path, owner, err));
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
	if (!top || stat(top, &st) || !top_has_git(top, st.st_dev))
		return true;
	return open_at(take_pointer(&top), ret, err);
}

void repository_free(struct repository *repo)
{
	if (!repo)
		return;
	free(repo->top);
	free(repo->git);
	free(repo->common);
	free(repo->ignored);
	free(repo);
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
	fd = git < 0 ? -1 : nofollow_file(git, "index");
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
