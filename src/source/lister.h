/*
 * source/lister.h - what is said between us and the program that lists files (lister/main.c).
 *
 * It reads what may be a stranger's: objects, indexes and rules of a repository. So it runs sealed,
 * without keys, and what it says is believed no more than the files are: sizes, kinds and
 * descriptors are checked, and it may die at any time.
 *
 * It is asked once, by LISTER_REQUEST: words that end in NUL, each a letter and a value:
 *
 *   d  the directory to be listed        r  or the revision of the repository that ...
 *   D  ... this directory is in          c  a comparison, of the directory (lister/changes.h)
 *   i  a pathspec to include             x  one to exclude
 *   l  nothing but the names of a list   f  a name of it
 *   s  submodules too                    u  what is not in the index, too
 *   a  alternates may be read            m  bytes of a file of a revision, at most
 *
 * It answers with one struct lister_message after the other, each a packet of a socket, and ends.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	/* Its descriptors. */
	LISTER_REQUEST,
	LISTER_ANSWERS,
	LISTER_ERRORS,
	LISTER_DIRECTORY, /* paths begin here */

	LISTER_INLINE_MAX = 16 << 10, /* bytes of a text, or of hunks; more come as a memory file */
	LISTER_PATH_MAX = 8 << 10,
	LISTER_MESSAGE_MAX = 48 << 10,
	LISTER_FDS = 2,            /* of a message */
	LISTER_SENDING = 64 << 10, /* bytes that wait for us, about: it goes on no further */
	LISTER_NOTES_MAX = 1000,
	LISTER_HUNKS_DEPTH = 8,
	LISTER_HUNKS_MAX = 256 << 20, /* bytes, of one file */
	LISTER_STEP_SECONDS = 20,     /* of processor time, for one file or directory */
	LISTER_OPEN_SECONDS = 60,     /* the same for what comes before the first */
};

/* Entries that a revision, a comparison or a directory may have, and bytes of their paths: so many
 * that no project has more, and not so many that no memory holds them. */
enum { LISTER_ENTRIES_MAX = 4 << 20, LISTER_PATHS_MAX = 512 << 20 };

/* The fate of each thing that a directory, a revision or a comparison has. */
enum listing_kind {
	LISTING_PASSED, /* nothing of the directory's: go on */
	LISTING_FILE,
	LISTING_LINK,
	LISTING_SPECIAL,
	LISTING_UNREADABLE,
	LISTING_UNRULED,   /* a directory with too many ignore rules (worktree_enter()) */
	LISTING_GENERATED, /* by its attributes, or its name */
	LISTING_VENDORED,
	LISTING_SUBMODULE, /* whose contents are not asked for */
	LISTING_LARGE,     /* of a revision: larger than what is read */
	LISTING_DELETED,   /* of a comparison: it is no more */
	LISTING_IGNORED,   /* by the tree's own .rlmdignore */
};

enum { LISTING_KINDS = LISTING_IGNORED + 1 };

enum lister_said {
	LISTER_ENTRY,
	LISTER_NOTE,   /* the text is one, for people */
	LISTER_FAILED, /* the text says why, `entry` is the kind of error: it ends */
	LISTER_END,    /* that was all */
};

enum lister_status {
	LISTER_NO_STATUS,
	LISTER_MODIFIED,
	LISTER_ADDED,
	LISTER_DELETED,
	LISTER_UNTRACKED
};

enum lister_flags {
	LISTER_MET = 1,        /* it is what the selection asked for */
	LISTER_HAS_FILE = 2,   /* a descriptor comes along: the text is in there */
	LISTER_HAS_HUNKS = 4,  /* there are some, maybe none */
	LISTER_HUNKS_FILE = 8, /* a descriptor comes along, behind that of the text: of the hunks */
};

/* Behind it: the path, the hunks as JSON, the text. */
struct lister_message {
	uint32_t said;
	uint32_t entry;  /* enum listing_kind */
	uint32_t status; /* enum lister_status */
	uint32_t flags;
	uint32_t below; /* bytes of the path that are not the selection's */
	uint32_t path_size, hunks_size, text_size; /* that are in the message */
};
