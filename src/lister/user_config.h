/*
 * lister/user_config.h - what the user's and the system's configuration of git say, by libgit2.
 *
 * One of the process, read once before it is sealed: the files that it names may be anywhere.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

enum user_rules { USER_IGNORES, USER_ATTRIBUTES }; /* core.excludesFile, core.attributesFile */

/* Reads it, unless that was done. False, each time: RLMD_ERROR_INPUT. */
bool user_config_read(struct rlmd_error *);

/* Before the process ends, for who looks for leaks. */
void user_config_forget(void);

/* The user's own rules, lent; empty where there are none. False: they are more than RULES_MAX. */
bool user_config_rules(enum user_rules, struct rlmd_text *ret);

/* Whether safe.directory allows a work tree that belongs to somebody else. */
bool user_config_trusts(const char *top);
