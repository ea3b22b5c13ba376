/*
 * source/file_index.h - which files an input was made of, and where in it each of them is.
 *
 * Once it is sealed it lies in a memory file, in a form that workers map and look things up in
 * (worker/source.py): a further worker costs the same for one file as for a hundred thousand.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memfile.h"
#include "base/text.h"

struct file_index;

struct file_entry {
	struct rlmd_text path;    /* lent, a NUL behind it: valid UTF-8, the key of `files` */
	size_t first_byte, bytes; /* of its text, in the input's memory file */
	size_t first_character, characters;
	size_t invalid;     /* bytes that are not UTF-8 */
	uint32_t highest;   /* code point */
	int64_t tokens;     /* estimate, for a model of which nothing is known */
	const char *status; /* of a comparison, static: \"added\", ...; NULL: not compared */
};

struct file_index *file_index_new(void);                /* empty, one reference */
struct file_index *file_index_ref(struct file_index *); /* NULL gives NULL */
void file_index_unref(struct file_index *);             /* NULL is fine */

/* The next file of the input, before the seal. `path` is copied, `scan` has ended; `status` is
 * "added", "modified", "deleted", "untracked" or NULL. */
void file_index_add(struct file_index *, const char *path, size_t first_byte,
		    size_t first_character, const struct text_scan *scan, const char *status);

/* The same by what is known of it; `invalid` to `status` are those of the entry. */
void file_index_put(struct file_index *, const struct file_entry *);

/* The value of changes(), as JSON; copied. Before the seal, once; without it there are none. */
void file_index_set_changes(struct file_index *, struct rlmd_text json);

/* Puts the entries in order of their numbers; of several with one path the last one stays.
 * RLMD_ERROR_INPUT for want of memory. All below is for a sealed one. */
bool file_index_seal(struct file_index *, struct rlmd_error *);

size_t file_index_count(const struct file_index *); /* also before; NULL has none */
struct file_entry file_index_get(const struct file_index *, size_t number);
struct rlmd_text file_index_changes(const struct file_index *); /* lent; empty: none */
struct memfile *file_index_file(const struct file_index *);     /* lent */

/* Bytes of the line that stands before a file's text, whose path has so many of them. */
size_t file_index_header(size_t path_size);

/* The key of a file by its name, new: it can be shown, and no two names have the same, so a
 * backslash is doubled. */
char *file_index_key(const char *name);
