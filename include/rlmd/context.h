/*
 * rlmd/context.h - the inputs of a task: texts, files and directories, each a variable of its code.
 *
 * A context cannot be changed once it is made. Any number of jobs use it without
 * copying it. Files are read once, while the context is loaded.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct event_base;
struct rlmd_context;
struct rlmd_context_loading;

enum { RLMD_CONTEXT_INPUTS_MAX = 48 }; /* variables of one context; each holds up to 4 GiB */

struct rlmd_context_options {
	size_t size;        /* sizeof(struct rlmd_context_options) */
	int64_t timeout_ms; /* of all of it; 0: none */
	/* Called often, a few times a second while the loading waits, with the bytes and files
	 * read so far of one variable. Return false to cancel. May be NULL. */
	bool (*progress)(void *owner, size_t bytes, size_t files);
	void *owner; /* lent: argument of progress() */

	/* Pathspecs of git, relative to the directory, for files of directories. No include: all
	 * files. */
	const char *const *include;
	size_t include_count;
	const char *const *exclude;
	size_t exclude_count;
	/* Only these files and the files in these directories; NULL: all. A listed file is read
	 * even if git ignores it. */
	const char *const *files;
	size_t file_count;
	int64_t max_file_size; /* bytes; larger files of a directory are skipped; 0: no limit */
	int64_t max_size;      /* bytes of one variable; 0: 4 GiB, which is the most */
	/* Only files that differ from a revision. BASE: the files of the directory against BASE.
	 * BASE..OTHER: OTHER against BASE. BASE...OTHER: OTHER against their merge base. */
	const char *diff;
	bool untracked;          /* read also files that are not in git's index */
	bool recurse_submodules; /* read also files of submodules; not with `diff` */
	bool allow_secrets;      /* read also files that look like secrets, with a note */
	bool allow_alternates;   /* read also objects of other repositories (git's alternates) */
	const char *directory;   /* of the repository for git:REV; NULL: the current one */
};

#define RLMD_CONTEXT_OPTIONS_INIT RLMD_INIT(struct rlmd_context_options)

/*
 * Reads every source. A source is a path, "-" (standard input), or NAME=PATH; sources without
 * a name become one variable, `context`. Several files, or those of a directory, are joined, each
 * under a line "===== PATH =====". Of a directory, ".git", links that lead out of it, binary files
 * and files that look like secrets are left out (rlmd_context_note()). `options` may be NULL.
 *
 * NULL: RLMD_ERROR_INPUT for a source that is missing, unreadable or too large, RLMD_ERROR_USAGE
 * for a bad or repeated name, RLMD_ERROR_BUDGET if timeout_ms was over, RLMD_ERROR_CANCELLED if
 * progress() returned false.
 */
RLMD_API struct rlmd_context *rlmd_context_load(const char *const *sources, size_t count,
						const struct rlmd_context_options *options,
						struct rlmd_error *);

/* Called once. The receiver owns the reference to `context`; NULL: `err` says why, as above. */
typedef void rlmd_context_done_fn(void *owner, struct rlmd_context *context,
				  const struct rlmd_error *err);

/*
 * Loads in steps of at most a megabyte on the loop of `base`, which is lent, and never blocks. No
 * callback comes before this returns. NULL for bad arguments. The loading is freed before done()
 * is called.
 */
RLMD_API struct rlmd_context_loading *rlmd_context_load_start(
	struct event_base *base, const char *const *sources, size_t count,
	const struct rlmd_context_options *options, rlmd_context_done_fn *done, void *owner,
	struct rlmd_error *);

/* Cancels and frees; no callback follows. May be called from inside progress(). NULL is fine. */
RLMD_API void rlmd_context_load_cancel(struct rlmd_context_loading *);

/* One text, any bytes, copied. `name` of the variable; NULL: "context". Errors as above. */
RLMD_API struct rlmd_context *rlmd_context_from_text(const char *name, struct rlmd_text,
						     struct rlmd_error *);

RLMD_API struct rlmd_context *rlmd_context_ref(struct rlmd_context *); /* NULL gives NULL */
RLMD_API void rlmd_context_unref(struct rlmd_context *);               /* NULL is fine */

/* One variable. Texts are lent as long as the context is held. */
struct rlmd_context_input {
	size_t size; /* sizeof(struct rlmd_context_input); all else is filled in */
	const char *name;
	struct rlmd_text content;
	size_t characters;    /* code points; a byte that is not UTF-8 counts as one */
	size_t invalid_bytes; /* that are not UTF-8 */
	int64_t tokens;       /* an estimate that holds for any tokenizer */
	const char *type;     /* "markdown", "code", "json", "plain"; static */
	size_t files;         /* that were joined; 0: it is one text */
	const char *left_out; /* "2 binary files, ..."; NULL: nothing was */
};

#define RLMD_CONTEXT_INPUT_INIT RLMD_INIT(struct rlmd_context_input)

RLMD_API size_t rlmd_context_count(const struct rlmd_context *);

/* False: there is no such input, or `ret->size` is not set. `context` comes first. */
RLMD_API bool rlmd_context_get_input(const struct rlmd_context *, size_t index,
				     struct rlmd_context_input *ret);

/* A file of an input that was put together from files; lent as long as the context is held. */
struct rlmd_context_file {
	size_t size;           /* sizeof(struct rlmd_context_file); all else is filled in */
	const char *path;      /* the key in `context.files`: escaped where it is not UTF-8 */
	struct rlmd_text text; /* its place in the content of the input, without the header */
	const char *status;    /* of a comparison: "added", "modified", ...; NULL: not compared */
};

#define RLMD_CONTEXT_FILE_INIT RLMD_INIT(struct rlmd_context_file)

/* False: there is no such input or file, or `ret->size` is not set. In the order of the text. */
RLMD_API bool rlmd_context_get_file(const struct rlmd_context *, size_t input, size_t index,
				    struct rlmd_context_file *ret);

/*
 * The changes of a comparison, lent: a JSON array of objects in the order of their paths, with
 * `path`, `status` ("added", "modified", "deleted", "untracked") and `hunks`. A hunk has `text` (as
 * git writes it, from "@@" on), `start` and `end`, the lines of the new file that it shows, and
 * `changed`, an array of pairs [first, last] of the lines that are new, from 1 and inclusive; `end`
 * is `start` - 1 if the hunk shows no line. A text of more than 50,000 lines is one hunk with an
 * empty text. The result is empty if nothing was compared.
 */
RLMD_API struct rlmd_text rlmd_context_changes(const struct rlmd_context *, size_t input);

/* A file, or what else there was, that was left out of a directory. */
struct rlmd_context_skipped {
	size_t size;        /* sizeof(struct rlmd_context_skipped); all else is filled in */
	const char *path;   /* UTF-8, repaired; lent as long as the context is held */
	const char *reason; /* "secret", "binary", "special", "link", "unreadable", "unruled",
			       "generated", "vendored", "submodule", "large", "missing"; static */
};

#define RLMD_CONTEXT_SKIPPED_INIT RLMD_INIT(struct rlmd_context_skipped)

/* The first 100,000 of an input. False: there is no such input, or no more. */
RLMD_API bool rlmd_context_get_skipped(const struct rlmd_context *, size_t input, size_t index,
				       struct rlmd_context_skipped *ret);

/* One sentence about files that were left out, and why. NULL: there are no more. */
RLMD_API const char *rlmd_context_note(const struct rlmd_context *, size_t index);

#ifdef __cplusplus
}
#endif
