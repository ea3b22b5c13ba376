/*
 * sandbox/archive.h - the bytecode that a template loads, as one file.
 *
 * A template that finds none gathers modules from their files into a memory file,
 * the store (worker/gather.py); at the end of the sandbox that becomes the archive of
 * the next templates of this interpreter. One that was given an archive maps it. The
 * file is in $XDG_CACHE_HOME/rlmd; where none is, an installation may have one, in the
 * directory `bytecode` beside that of the worker, which is only read. An archive is believed only
 * where nobody else but root could have written it, while it is whole, and while all
 * that it was made of is as it was.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/log.h"

struct archive;

/*
 * For a template of this interpreter and script (absolute, lent during the call).
 * `cache`: the directory for caches, absolute, or NULL: modules are gathered each time.
 * `log` is lent for good, or NULL.
 */
struct archive *archive_new(const char *cache, const char *python, const char *script,
			    const struct log *log);
void archive_free(struct archive *); /* NULL is fine */

/* The files of a template about to start: an empty store, and the file or -1. False: no store. */
bool archive_begin(struct archive *, struct rlmd_error *);
int archive_store(const struct archive *);
int archive_file(const struct archive *);

/* While it starts: whether it may use the file, as LAUNCH_ARCHIVE_*. Milliseconds of work. */
uint32_t archive_judge(struct archive *);
uint32_t archive_verdict(const struct archive *); /* what it said last */

/* Keeps what the last template has gathered, if it was to; where that cannot be, nothing is lost.
 */
void archive_keep(struct archive *);
