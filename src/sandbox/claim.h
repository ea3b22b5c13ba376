/*
 * sandbox/claim.h - directories that are somebody's for as long as he lives.
 *
 * Whoever makes one holds a lock on the directory itself, which the kernel drops with his
 * last process that has the descriptor. Who sees the directory sees the lock, also from
 * another pid namespace, where a pid in its name would say nothing. One without a lock is
 * nobody's.
 */
#pragma once

#include <stdbool.h>

/*
 * Makes the directory, or shares one that is there, and holds it. The descriptor, owned; -1
 * and errno, EWOULDBLOCK where somebody keeps it locked for himself.
 */
int claim_make(const char *path);

/* Removes an empty directory below `parent` that nobody holds. False and errno. */
bool claim_sweep(int parent, const char *name);
