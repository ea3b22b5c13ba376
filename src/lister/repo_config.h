/*
 * lister/repo_config.h - a repository's own configuration, read and not followed.
 *
 * A repository may be a stranger's. So only those settings are heeded that the repository makes
 * about itself; settings that name other files, or programs, are told and left alone, and no
 * include is read.
 */
#pragma once

#include <stdbool.h>

#include "base/text.h"

struct repo_config {
	bool fold;      /* core.ignoreCase */
	bool modeless;  /* core.fileMode is off: who may execute a file is not known */
	char *worktree; /* owned: core.worktree, as it stands there; or NULL */
	bool sha256;    /* extensions.objectFormat */
	bool reftable;  /* extensions.refStorage */
	char *ignored;  /* owned: names of what is not heeded, parted by ", "; or NULL */
};

/* Embedded, zero at first; of several texts, the later one wins. */
void repo_config_read(struct repo_config *, struct rlmd_text);
void repo_config_done(struct repo_config *);
