/*
 * source/user_config.h - the user's and the system's configuration of git, by libgit2.
 */
#pragma once

#include <git2.h>
#include <stdbool.h>

#include "base/error.h"

struct user_config {
	git_config *config; /* owned */
};

/* To be ended with user_config_done() in any case. RLMD_ERROR_INPUT. */
bool user_config_open(struct user_config *, struct rlmd_error *);
void user_config_done(struct user_config *);

/* A setting that is a path, or where the file of that name is by default; new, NULL: neither. */
char *user_config_path(const struct user_config *, const char *key, const char *name);

/* Whether safe.directory allows a work tree that belongs to somebody else. */
bool user_config_trusts(const struct user_config *, const char *top);
