#include "lister/user_config.h"

#include <fcntl.h>
#include <git2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "lister/repository.h"
#include "lister/rules.h"
#include "source/nofollow.h"

static struct {
	bool read, ok;
	struct rlmd_error error; /* why not */
	struct {
		char *bytes; /* owned; NULL: there are none */
		size_t size;
		bool large;
	} rules[2];
	char **safe; /* owned, and each of them: values of safe.directory, in their order */
	size_t safe_count;
} user;

/* --- the files of it ---------------------------------------------------------------------- */

/* A file that is not there is none. */
static bool add_file(git_config *config, const char *path, git_config_level_t level,
		     struct rlmd_error *err)
{
	if (!path || !*path || access(path, R_OK))
		return true;
	return !git_config_add_file_ondisk(config, path, level, NULL, 0) ||
	       repository_fail(err, path);
}

static bool add_found(git_config *config, int (*find)(git_buf *), git_config_level_t level,
		      struct rlmd_error *err)
{
	git_buf path = {0};
	bool ok = find(&path) || add_file(config, path.ptr, level, err);

	git_buf_dispose(&path);
	return ok;
}

/* The same files as git's, and in their place those that the environment names. */
static bool add_files(git_config *config, struct rlmd_error *err)
{
	const char *system = getenv("GIT_CONFIG_SYSTEM"), *global = getenv("GIT_CONFIG_GLOBAL");
	const char *nosystem = getenv("GIT_CONFIG_NOSYSTEM");

	if (nosystem && *nosystem && strcmp(nosystem, "0") != 0)
		system = "";
	if (!(system ? add_file(config, system, GIT_CONFIG_LEVEL_SYSTEM, err)
		     : add_found(config, git_config_find_system, GIT_CONFIG_LEVEL_SYSTEM, err)))
		return false;
	if (global)
		return add_file(config, global, GIT_CONFIG_LEVEL_GLOBAL, err);
	return add_found(config, git_config_find_xdg, GIT_CONFIG_LEVEL_XDG, err) &&
	       add_found(config, git_config_find_global, GIT_CONFIG_LEVEL_GLOBAL, err);
}

/* --- rules that it names -------------------------------------------------------------------- */

static char *default_path(const char *name)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (xdg && *xdg)
		return xasprintf("%s/git/%s", xdg, name);
	return home && *home ? xasprintf("%s/.config/git/%s", home, name) : NULL;
}

/* A setting that is a path, or where the file of that name is by default; new, NULL: neither. */
static char *path_of(git_config *config, const char *key, const char *name)
{
	git_buf buf = {0};
	char *path = git_config_get_path(&buf, config, key) ? default_path(name) : xstrdup(buf.ptr);

	git_buf_dispose(&buf);
	return path;
}

/* The user's own, wherever it is and whatever it is; no rules in what is no regular file. */
static void read_rules(git_config *config, enum user_rules which, const char *key, const char *name)
{
	auto_close int directory = -1;
	auto_free char *path = path_of(config, key, name);
	auto_free char *real = path ? realpath(path, NULL) : NULL;
	char *slash = real ? strrchr(real, '/') : NULL;
	struct stat st;

	if (!slash)
		return;
	*slash = '\0';
	directory = open(*real ? real : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return;
	user.rules[which].bytes = nofollow_read(directory, slash + 1, RULES_MAX,
						&user.rules[which].size);
	user.rules[which].large = !user.rules[which].bytes &&
				  !fstatat(directory, slash + 1, &st, AT_SYMLINK_NOFOLLOW) &&
				  S_ISREG(st.st_mode) && st.st_size > RULES_MAX;
}

bool user_config_rules(enum user_rules which, struct rlmd_text *ret)
{
	*ret = text_from(user.rules[which].bytes, user.rules[which].size);
	return !user.rules[which].large;
}

/* --- safe.directory ------------------------------------------------------------------------- */

/* As git has it: "~/" is the user's own directory. New. */
static char *expand(const char *value)
{
	git_buf buf = {0};
	char *path = xstrdup(git_config_parse_path(&buf, value) ? value : buf.ptr);

	git_buf_dispose(&buf);
	return path;
}

static void read_safe(const git_config *config)
{
	git_config_iterator *iterator;
	git_config_entry *entry;

	if (git_config_multivar_iterator_new(&iterator, config, "safe.directory", NULL))
		return;
	while (!git_config_next(&entry, iterator)) {
		user.safe = array_grow(user.safe, user.safe_count, sizeof *user.safe);
		user.safe[user.safe_count++] = expand(entry->value ? entry->value : "");
	}
	git_config_iterator_free(iterator);
}

/* git's own rule: an empty one forgets those before it, "*" is any. */
static bool allows(const char *value, const char *top, bool before)
{
	size_t size = strlen(value);

	if (!*value)
		return false;
	if (!strcmp(value, "*") || !strcmp(value, top))
		return true;
	if (size > 2 && !strcmp(value + size - 2, "/*") && !strncmp(value, top, size - 1))
		return true;
	return before;
}

bool user_config_trusts(const char *top)
{
	bool allowed = false;

	for (size_t i = 0; i < user.safe_count; i++)
		allowed = allows(user.safe[i], top, allowed);
	return allowed;
}

/* --- the whole ------------------------------------------------------------------------------ */

static bool read_all(struct rlmd_error *err)
{
	git_config *config = NULL;
	bool ok;

	if (git_config_new(&config))
		return repository_fail(err, "git's configuration");
	ok = add_files(config, err);
	if (ok) {
		read_rules(config, USER_IGNORES, "core.excludesFile", "ignore");
		read_rules(config, USER_ATTRIBUTES, "core.attributesFile", "attributes");
		read_safe(config);
	}
	git_config_free(config);
	return ok;
}

bool user_config_read(struct rlmd_error *err)
{
	if (!user.read) {
		git_libgit2_init();
		user.read = true;
		user.ok = read_all(&user.error);
	}
	if (!user.ok && err)
		*err = user.error;
	return user.ok;
}

void user_config_forget(void)
{
	for (size_t i = 0; i < user.safe_count; i++)
		free(user.safe[i]);
	free(user.safe);
	free(user.rules[USER_IGNORES].bytes);
	free(user.rules[USER_ATTRIBUTES].bytes);
	if (user.read)
		git_libgit2_shutdown();
	memset(&user, 0, sizeof user);
}
