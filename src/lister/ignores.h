/*
 * lister/ignores.h - the files that the .rlmdignore at the top of a tree leaves out of inputs.
 *
 * Its lines are those of a .gitignore (gitignore(5)). Of a comparison the older side's file counts,
 * so that no change hides itself. It leaves out what git lists, tracked or not; nothing is taken in
 * by it.
 */
#pragma once

#include <git2.h>
#include <jansson.h>
#include <stdbool.h>

#include "lister/objects.h"

struct ignores;

/* `prefix` is that of the paths below the top, empty or with a slash at its end. NULL: there is no
 * such file, or it is none that can be read, of which a note is added. */
struct ignores *ignores_of_directory(const char *top, const char *prefix, json_t *notes);
struct ignores *ignores_of_tree(struct objects *, const git_tree *, const char *prefix,
				json_t *notes);
void ignores_free(struct ignores *); /* NULL is fine */

/* Whether it leaves the file out. NULL leaves nothing out. */
bool ignores_file(const struct ignores *, const char *path);
