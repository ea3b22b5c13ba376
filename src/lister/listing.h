/*
 * lister/listing.h - which files of a directory are a context, and what becomes of the others.
 *
 * Those of a work tree are what "git ls-files --cached --others --exclude-standard" names and what
 * is there; all of any other directory. git says which; the walk (lister/walk.h) opens them.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "lister/rules.h"
#include "source/lister.h"
#include "source/selection.h"

struct listing_options {
	struct selection *selection; /* lent: it is told what was met */
	bool recurse_submodules;
	bool tracked_only; /* what is in the index */
	bool open_all;     /* of what is left out, too, a descriptor of what is a file */
};

/* All lent until the next step. */
struct listing_entry {
	enum listing_kind kind;
	bool met;                              /* the selection was told of it ... */
	size_t below;                          /* ... without so many bytes of the path */
	const char *path;                      /* from the directory on */
	int fd;                                /* a file's, open for reading; else -1 */
	const struct git_index_entry *tracked; /* what the index has of it; or NULL */
	const struct git_oid *id;              /* of its contents, in a tree; or NULL */
	bool executable;                       /* in a tree */
	struct rlmd_text text;                 /* a LISTING_FILE's without a descriptor */
	enum lister_status status;             /* of a comparison */
	json_t *hunks;                         /* likewise; or NULL */
	int error; /* the errno of a LISTING_UNREADABLE, where there was one; or 0 */
};

/* The kind of a file by its path and its marks: LISTING_FILE, LISTING_GENERATED or
 * LISTING_VENDORED. */
enum listing_kind listing_judge(const char *path, enum rules_state generated,
				enum rules_state vendored);

struct listing;

/* `notes` is lent: what is not heeded of a repository's configuration is added to them.
 * RLMD_ERROR_INPUT where the directory, or its repository, cannot be read or is refused. */
struct listing *listing_new(const char *path, const struct listing_options *, json_t *notes,
			    struct rlmd_error *);
void listing_free(struct listing *); /* NULL is fine */

const char *listing_root(const struct listing *);   /* lent: the directory */
const char *listing_top(const struct listing *);    /* lent: of its work tree; or itself */
const char *listing_prefix(const struct listing *); /* lent: its path there, as a prefix */

/* One step, in the order of whole paths; false: there is nothing more. */
bool listing_next(struct listing *, struct listing_entry *ret);
