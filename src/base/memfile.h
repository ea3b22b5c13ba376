/*
 * base/memfile.h - bytes that are written once, sealed, then shared.
 *
 * Contexts and every string too big for JSON live in one. It is counted by
 * references, because a run, its sub-runs and a worker being started may all
 * hold the same context; the bytes are never copied between them. A large text lies in a memory
 * file (memfd_create(2)); a small one, and one of some megabytes that a worker sends, lies in our
 * own memory until somebody asks for the descriptor, so that ten thousand prompts do not take ten
 * thousand of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/fixed_width.h"
#include "base/text.h"

/* Bytes: up to here it lies on the heap; and, if it is private, in pages of our own. */
enum { MEMFILE_HEAP_MAX = 64 << 10, MEMFILE_PRIVATE_MAX = 4 << 20 };

struct memfile;

/* An empty one with one reference. `name` is lent for good: it shows in /proc/PID/fd. */
struct memfile *memfile_new(const char *name);

/* The same, but up to MEMFILE_PRIVATE_MAX it takes no descriptor before memfile_fd(), which copies
 * it once. */
struct memfile *memfile_new_private(const char *name);

/* Appends; only before the seal. RLMD_ERROR_MACHINE when there is no memory or descriptor for it.
 */
bool memfile_append(struct memfile *, struct rlmd_text, struct rlmd_error *);

/* The same for who counts what it appends: memfile_count() has to be told of all of it before the
 * seal, by scans that have ended. */
bool memfile_append_uncounted(struct memfile *, struct rlmd_text, struct rlmd_error *);
void memfile_count(struct memfile *, const struct text_scan *);

/* No more writing, by anybody, ever (F_SEAL_*); the counts are final after it. */
bool memfile_seal(struct memfile *, struct rlmd_error *);

/*
 * `scan->bytes` of a sealed file from `start` on: sealed, with one reference, and not copied.
 * `scan` is believed; it has ended.
 */
struct memfile *memfile_slice(struct memfile *, size_t start, const struct text_scan *scan);

struct memfile *memfile_ref(struct memfile *); /* NULL gives NULL */
void memfile_unref(struct memfile *);          /* NULL is fine */

/* The sealed memory file, lent, opened O_CLOEXEC; -1 and RLMD_ERROR_MACHINE where there is no room.
 * That of a slice is the whole one's. */
int memfile_fd(struct memfile *, struct rlmd_error *);

/* Of a sealed file: the form that a worker may have it in, where it can map texts, and the bytes
 * that it takes so. A small one stays as it is, UTF-8. */
enum text_form memfile_form(const struct memfile *);
size_t memfile_form_size(const struct memfile *, enum text_form);
size_t memfile_start(const struct memfile *); /* the byte of memfile_fd() where it begins */

size_t memfile_size(const struct memfile *); /* bytes */
const struct text_scan *memfile_scan(const struct memfile *);

/* The bytes, mapped read-only at the first call, lent while a reference is held. */
struct rlmd_text memfile_text(struct memfile *);
