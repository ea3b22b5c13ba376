/*
 * losing_disk.h - a disk of which the power can be cut, beneath SQLite.
 *
 * It is the usual disk, and remembers beside it what each file would be after a power cut: what
 * was synced is there; of what was written later a part is, sector by sector, as chance has it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

enum { LOSING_DISK_FILES = 2 }; /* a database and its log */

/* Every database that is opened from now on stands on it. */
void losing_disk_begin(void);
void losing_disk_end(void);

/*
 * The power is cut just before the `after`th write or sync from now, which takes place all the same
 * for whoever asked. What was left then is written to `path`, as a database beside its log.
 * `said` is read at that moment.
 */
void losing_disk_cut(int after, unsigned seed, const char *path, const atomic_int *said);

/* Whether it came to that; and what `said` was then. */
bool losing_disk_was_cut(int *ret_said);
