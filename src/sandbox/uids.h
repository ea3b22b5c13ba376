/*
 * sandbox/uids.h - uids that belong to nobody, one for each living worker.
 *
 * Supervisors on one machine share the range: each claims blocks of it, by locks
 * in a file that only root can open. Where no such file can be made, by names of
 * abstract sockets: those are one network namespace's, and anybody may take them.
 * The kernel gives both back when the supervisor dies. A uid is given back when no process has it
 * any more, or not at all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
	/*
	 * By default: above what useradd gives out as subuids (to 600100000), systemd to
	 * containers (to 1879048191) and SSSD to a directory's users (to 2000200000), and below
	 * what is negative in 32 bits.
	 */
	UIDS_FIRST = 2100000000,
	UIDS_BLOCK = 64,
	UIDS_BLOCKS = 160,
	UIDS_COUNT = UIDS_BLOCK * UIDS_BLOCKS,
};

struct uids {
	uint32_t first;          /* of the range */
	bool locked;             /* blocks are claimed by locks in `file` */
	int file;                /* owned, where `locked`; never removed, of one inode for good */
	int claims[UIDS_BLOCKS]; /* owned, where not: sockets */
	size_t claim_count;
	bool claimed[UIDS_BLOCKS];
	size_t block_count; /* that are claimed */
	uint32_t *free;     /* owned */
	size_t free_count;
};

/*
 * The range begins at `first`, rounded up to a whole block; 0: at UIDS_FIRST. Whatever ranges
 * they have, two that overlap see each other's locks.
 */
void uids_begin(struct uids *, uint32_t first);
void uids_done(struct uids *); /* also of one that is all zero */

/*
 * Before the first is taken: opens the file of locks, UIDS_FILE by default. -1 and
 * errno where it cannot be, or is not root's alone.
 */
#define UIDS_FILE "/run/rlmd-uids"
int uids_lock(struct uids *, const char *path);

bool uids_take(struct uids *, uint32_t *ret_uid, struct rlmd_error *); /* errno too */
void uids_give(struct uids *, uint32_t uid);
