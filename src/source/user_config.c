#include "source/user_config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "source/repository.h"

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

/* The same files as git's, and in their place what the environment names. */
bool user_config_open(struct user_config *user, struct rlmd_error *err)
{
	const char *system = getenv("GIT_CONFIG_SYSTEM"), *global = getenv("GIT_CONFIG_GLOBAL");
	const char *nosystem = getenv("GIT_CONFIG_NOSYSTEM");

	user->config = NULL;
	if (git_config_new(&user->config))
		return repository_fail(err, "git's configuration");
	if (nosystem && *nosystem && strcmp(nosystem, "0") != 0)
		system = "";
	if (!(system ? add_file(user->config, system, GIT_CONFIG_LEVEL_SYSTEM, err)
		     : add_found(user->config, git_config_find_system, GIT_CONFIG_LEVEL_SYSTEM,
				 err)))
		return false;
	if (global)
		return add_file(user->config, global, GIT_CONFIG_LEVEL_GLOBAL, err);
	return add_found(user->config, git_config_find_xdg, GIT_CONFIG_LEVEL_XDG, err) &&
	       add_found(user->config, git_config_find_global, GIT_CONFIG_LEVEL_GLOBAL, err);
}

void user_config_done(struct user_config *user)
{
	git_config_free(user->config);
}

static char *default_path(const char *name)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (xdg && *xdg)
		return xasprintf("%s/git/%s", xdg, name);
	return home && *home ? xasprintf("%s/.config/git/%s", home, name) : NULL;
}

char *user_config_path(const struct user_config *user, const char *key, const char *name)
{
	git_buf buf = {0};
	char *path = git_config_get_path(&buf, user->config, key) ? default_path(name)
								  : xstrdup(buf.ptr);

	git_buf_dispose(&buf);
	return path;
}

/* As git has it: "~/" is the user's own directory. New. */
static char *expand(const char *value)
{
	git_buf buf = {0};
	char *path = xstrdup(git_config_parse_path(&buf, value) ? value : buf.ptr);

	git_buf_dispose(&buf);
	return path;
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

bool user_config_trusts(const struct user_config *user, const char *top)
{
	git_config_iterator *iterator;
	git_config_entry *entry;
	bool allowed = false;

	if (git_config_multivar_iterator_new(&iterator, user->config, "safe.directory", NULL))
		return false;
	while (!git_config_next(&entry, iterator)) {
		auto_free char *value = expand(entry->value ? entry->value : "");

		allowed = allows(value, top, allowed);
	}
	git_config_iterator_free(iterator);
	return allowed;
}
