/*
 * review/code.h - the files of a review by their paths, and their lines.
 *
 * A line ends with a line feed and with nothing else; lines count from 1.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct rlmd_context;

struct code_range {
	size_t first, last;
};

/* Lines that are compared for one review: seconds. Answers are a stranger's, and may quote what
 * stands everywhere, thousands of times. */
enum { CODE_WORK_MAX = 100000000 };

/* A line that has a word in it, by its digest, which white space makes no difference to. */
struct code_print {
	uint64_t digest;
	size_t line, size; /* from 1; bytes without white space */
};

struct code_prints {
	struct code_print *items; /* owned; NULL: nobody asked */
	size_t count;
};

struct code_file {
	char *path;            /* owned: the context's key */
	char *name;            /* owned: in reports: its path in the repository */
	struct rlmd_text text; /* lent, or in `repaired` */
	char *repaired;        /* owned: the text with U+FFFD for what is not UTF-8; or NULL */
	size_t *starts;        /* owned: where lines begin, and the end; NULL: nobody asked */
	size_t lines;
	size_t rank;                /* in which it was added */
	struct code_range *changes; /* owned: lines that were added or changed */
	size_t change_count;
	struct code_prints prints;
};

struct code_skipped {
	char *name;         /* owned: its path in the repository */
	const char *reason; /* static (rlmd_context_get_skipped()) */
};

struct code {
	struct code_file *files; /* owned, sorted by path once code_seal() was called */
	size_t count;
	char *prefix;  /* owned: of the context in its repository, with a slash; NULL: at its top */
	char **unread; /* owned: names of files that were changed and not loaded */
	size_t unread_count;
	struct code_skipped *skipped; /* owned: what was left out of the context */
	size_t skipped_count;
	bool compared;  /* it is known what was changed */
	char **changed; /* owned: names of files that were changed, or are gone */
	size_t changed_count;
	size_t work; /* lines that were compared so far */
};

/* One more file; the text is lent. Of several with a path the last one counts. */
void code_add(struct code *, struct rlmd_text path, struct rlmd_text text);
void code_seal(struct code *);

/* All files of a context, lent, with what was changed in them; sealed. */
void code_load(struct code *, const struct rlmd_context *);

/* The changed lines, as rlmd_context_changes() tells them. */
void code_set_changes(struct code *, struct rlmd_text json);
void code_done(struct code *);

/* NULL: there is none of that path. Its lines are known then. */
const struct code_file *code_find(struct code *, struct rlmd_text path);

/* A line with what ends it, and without that and white space at both ends. */
struct rlmd_text code_line(const struct code_file *, size_t number);
struct rlmd_text code_line_trimmed(const struct code_file *, size_t number);
size_t code_line_of(const struct code_file *, size_t byte);

/* The lines of a file that have words, lent; and the index of the first one from a line on. */
const struct code_prints *code_prints(struct code *, const struct code_file *);
size_t code_prints_from(const struct code_prints *, size_t line);

/* Whether the file of that name is as it was: something was compared, and it was not changed. */
bool code_is_as_it_was(const struct code *, const char *name);

/* Whether any of these lines was changed. */
bool code_changed(const struct code_file *, size_t first, size_t last);
