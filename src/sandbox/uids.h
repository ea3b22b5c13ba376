/*
 * sandbox/uids.h - uids that belong to nobody, one for each living worker.
 *
 * Supervisors on one machine share the range: each claims blocks of it, by locks
 * in a file that only root can open. Where no such file can be made, by names of
 * abstract sockets: those are one network namespace's, and anybody may take them.
 * The kernel gives both back when the supervisor dies. Who takes a uid returns it
 * when no process has it any more, or not at all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
	UIDS_FIRST = 210000,
	UIDS_BLOCK = 64,
	UIDS_BLOCKS = 160,
};

struct uids {
	bool locked;             /* blocks are claimed by locks in `file` */
	int file;                /* owned, where `locked`; never removed, of one inode for good */
	int claims[UIDS_BLOCKS]; /* owned, where not: sockets */
	size_t claim_count;
	bool claimed[UIDS_BLOCKS];
	size_t block_count; /* that are claimed */
	uint32_t *free;     /* owned */
	size_t free_count;
};

/* All zero is an empty one. */
void uids_done(struct uids *);

/*
 * Before the first is taken: opens the file of locks, UIDS_FILE by default. -1 and
 * errno where it cannot be, or is not root's alone.
 */
#define UIDS_FILE "/run/rlmd-uids"
int uids_lock(struct uids *, const char *path);

bool uids_take(struct uids *, uint32_t *ret_uid, struct error *); /* errno too */
void uids_give(struct uids *, uint32_t uid);
