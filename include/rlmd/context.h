/*
 * rlmd/context.h - the inputs of a task: texts, files and directories, each a variable of its code.
 *
 * A context is sealed once it is made: nobody can change it, any number of jobs
 * may use it, and none copies it. Nothing of a file is looked at after it was
 * loaded.
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
	/* How much was read so far of one variable, and how many files; comes often, and a few
	 * times a second where something is waited for. False: no more of it. NULL: nobody. */
	bool (*progress)(void *owner, size_t bytes, size_t files);
	void *owner; /* lent: of the progress */

	/* Which files of directories: pathspecs of git, from the directory on. No include: all. */
	const char *const *include;
	size_t include_count;
	const char *const *exclude;
	size_t exclude_count;
	/* Nothing but these files, and what is in these directories; NULL: no list. git's ignore
	 * rules don't hide a file that is listed. */
	const char *const *files;
	size_t file_count;
	int64_t max_file_size; /* bytes; larger files of a directory are skipped; 0: no limit */
	int64_t max_size;      /* bytes of one variable; 0: 4 GiB, which is the most */
	/* Only the files of a directory that differ from a revision, BASE; or with BASE..OTHER and
	 * BASE...OTHER those that OTHER has other than it, or than where the two parted. */
	const char *diff;
	bool untracked;          /* of a work tree also what is not in the index */
	bool recurse_submodules; /* what is in them, too; not of a comparison */
	bool allow_secrets;      /* what looks like a secret is sent, and told */
	bool allow_alternates;   /* of revisions: objects elsewhere that a repository names */
	const char *directory;   /* whose repository git:REV is of; NULL: the current one */
};

/*
 * Reads every source. A source is a path, "-" (standard input), or NAME=PATH; those without a name
 * are one variable, `context`. Several of them, and a directory, are put together, each file under
 * a line "===== PATH =====". Of a directory, ".git", links that lead out of it, binary files and
 * what looks like a secret are left out (rlmd_context_note()). `options` may be NULL.
 *
 * NULL: RLMD_ERROR_INPUT names what is missing, unreadable or too large, RLMD_ERROR_USAGE a bad
 * name or one that is given twice; RLMD_ERROR_BUDGET where the time was over first,
 * RLMD_ERROR_CANCELLED where progress() said so.
 */
RLMD_API struct rlmd_context *rlmd_context_load(const char *const *sources, size_t count,
						const struct rlmd_context_options *options,
						struct rlmd_error *);

/* Once. `context` is the receiver's, to be unreferenced; NULL: `err` says why, as above. */
typedef void rlmd_context_done_fn(void *owner, struct rlmd_context *context,
				  const struct rlmd_error *err);

/*
 * The same in small steps on the loop of `base`, which is lent: nothing is waited for, and no step
 * takes in more than a megabyte. Neither callback comes before it returns. NULL for what is wrong
 * with the sources themselves. The loading is gone when done() is called.
 */
RLMD_API struct rlmd_context_loading *rlmd_context_load_start(
	struct event_base *base, const char *const *sources, size_t count,
	const struct rlmd_context_options *options, rlmd_context_done_fn *done, void *owner,
	struct rlmd_error *);

/* No callback follows. From inside progress(), too. NULL is fine. */
RLMD_API void rlmd_context_load_cancel(struct rlmd_context_loading *);

/* One text, any bytes, copied. `name` of the variable; NULL: "context". Errors as above. */
RLMD_API struct rlmd_context *rlmd_context_from_text(const char *name, struct rlmd_text,
						     struct rlmd_error *);

RLMD_API struct rlmd_context *rlmd_context_ref(struct rlmd_context *); /* NULL gives NULL */
RLMD_API void rlmd_context_unref(struct rlmd_context *);               /* NULL is fine */

/* What is known of a variable. All is lent as long as the context is held. */
struct rlmd_context_input {
	size_t size; /* sizeof(struct rlmd_context_input); all else is filled in */
	const char *name;
	struct rlmd_text content;
	size_t characters;    /* code points; a byte that is not UTF-8 counts as one */
	size_t invalid_bytes; /* that are not UTF-8 */
	int64_t tokens;       /* estimate, for a model of which nothing is known */
	const char *type;     /* "markdown", "code", "json", "plain"; static */
	size_t files;         /* that it was put together from; 0: it is one text */
	const char *left_out; /* "2 binary files, ..."; NULL: nothing was */
};

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

/* False: there is no such input or file, or `ret->size` is not set. In the order of the text. */
RLMD_API bool rlmd_context_get_file(const struct rlmd_context *, size_t input, size_t index,
				    struct rlmd_context_file *ret);

/*
 * The changes of a comparison, lent: a JSON array of objects in the order of their paths, with
 * `path`, `status` ("added", "modified", "deleted", "untracked") and `hunks`. A hunk has `text` (as
 * git writes it, from "@@" on), `start` and `end`, the lines of the new file that it shows, and
 * `changed`, an array of pairs [first, last] of those that are new in it, both from 1 and
 * inclusive; `end` is `start` - 1 where it shows none. Of a text of more than
 * 50,000 lines it is one hunk, with an empty text. Empty where nothing was compared.
 */
RLMD_API struct rlmd_text rlmd_context_changes(const struct rlmd_context *, size_t input);

/* What was left out, and why, a sentence each; NULL behind the last. */
RLMD_API const char *rlmd_context_note(const struct rlmd_context *, size_t index);

#ifdef __cplusplus
}
#endif
