/*
 * lister/rules.h - what .gitignore and .gitattributes files say of the paths below them.
 *
 * A stack: what comes later wins. A file's rules are of the paths below its directory, `base`,
 * which is empty or ends in a slash, and its paths are of the work tree.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* Bytes of all files of a stack at once: a tree may be deep, with rules in each directory, and a
 * rule takes some seventy times of its own bytes. */
enum { RULES_MAX = 2 << 20 };

struct rules;

struct rules *rules_new(bool fold); /* letters of ASCII are the same in either case */
void rules_free(struct rules *);    /* NULL is fine */

/* False: it would be more than that, and nothing was added. */
bool rules_add_ignores(struct rules *, const char *base, struct rlmd_text file);
bool rules_add_attributes(struct rules *, const char *base, struct rlmd_text file);

/* How many files there are; and to have no more than so many again. */
size_t rules_depth(const struct rules *);
void rules_cut(struct rules *, size_t depth);

/* Of the path alone: what is below an ignored directory is ignored too. */
bool rules_ignore(const struct rules *, const char *path, bool directory);

enum rules_attribute { RULES_GENERATED, RULES_VENDORED, RULES_ATTRIBUTES };

enum rules_state { RULES_UNSPECIFIED, RULES_TRUE, RULES_FALSE };

/* The state of an attribute of a file, gitattributes(5). */
enum rules_state rules_state(const struct rules *, const char *path, enum rules_attribute);
