/*
 * The program that lists the files of a directory, a revision or a comparison for rlmd, which
 * starts it: sealed, without keys, and killed when it is not wanted any more (source/lister.h).
 *
 * Before the seal, only the user's own configuration of git is read, and by us, past no link, where
 * the repository is. All that a stranger may have written for libgit2 is read behind it.
 */
#include <errno.h>
#include <git2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "lister/entries.h"
#include "lister/repository.h"
#include "lister/seal.h"
#include "lister/teller.h"
#include "lister/user_config.h"
#include "source/context.h"
#include "source/lister.h"

enum {
	ROOTS = 4,
	STEPS = 256, /* that share the time of one, where they find nothing */
};

/* --- what is asked of it ------------------------------------------------------------------ */

struct request {
	char *words; /* owned: the values below are in there */
	struct entries_options options;
	struct selection *selection;      /* owned */
	const char *directory, *revision; /* lent: one of them ... */
	const char
		*start; /* lent: ... and in which directory a revision's repository is looked for */
};

/* Values of one letter, lent. */
struct values {
	const char **all; /* owned */
	size_t count;
};

static void add_value(struct values *values, const char *value)
{
	values->all = array_grow(values->all, values->count, sizeof *values->all);
	values->all[values->count++] = value;
}

static bool read_all(struct request *request, int fd, size_t *ret_size)
{
	off_t size = lseek(fd, 0, SEEK_END);

	if (size <= 0)
		return false;
	*ret_size = (size_t)size;
	request->words = xcalloc(*ret_size + 1, 1);
	return pread(fd, request->words, *ret_size, 0) == size;
}

/* One word; false: it is none. */
static bool take_word(struct request *request, const char *word, struct values *include,
		      struct values *exclude, struct values *files, bool *listed)
{
	struct entries_options *options = &request->options;
	const char *value = word + 1;

	switch (*word) {
	case 'd':
		request->directory = value;
		return true;
	case 'r':
		request->revision = value;
		return true;
	case 'D':
		request->start = value;
		return true;
	case 'c':
		options->changes.comparison = value;
		return true;
	case 'i':
		add_value(include, value);
		return true;
	case 'x':
		add_value(exclude, value);
		return true;
	case 'f':
		add_value(files, value);
		return true;
	case 'l':
		*listed = true;
		return true;
	case 's':
		options->listing.recurse_submodules = true;
		return true;
	case 'u':
		options->changes.untracked = true;
		return true;
	case 'a':
		options->changes.alternates = true;
		return true;
	case 'm':
		options->changes.max_file_size = strtoul(value, NULL, 10);
		return true;
	}
	return false;
}

static bool select_files(struct request *request, const struct values *include,
			 const struct values *exclude, struct values *files, bool listed,
			 struct rlmd_error *err)
{
	if (listed)
		files->all = xreallocarray(files->all, files->count + 1, sizeof *files->all);
	request->selection = selection_new(
		&(struct selection_options){
			.include = include->all,
			.include_count = include->count,
			.exclude = exclude->all,
			.exclude_count = exclude->count,
			.files = listed ? files->all : NULL,
			.file_count = files->count,
		},
		err);
	request->options.listing.selection = request->selection;
	return request->selection;
}

/* From a descriptor, to its end. To be ended with request_done() in any case. */
static bool request_read(struct request *request, int fd, struct rlmd_error *err)
{
	struct values include = {0}, exclude = {0}, files = {0};
	size_t size = 0, at = 0;
	bool listed = false, ok;

	*request = (struct request){.start = "."};
	request->options.changes.max_file_size = CONTEXT_SIZE_MAX;
	ok = read_all(request, fd, &size);
	while (ok && at < size) {
		ok = take_word(request, request->words + at, &include, &exclude, &files, &listed);
		at += strlen(request->words + at) + 1;
	}
	if (!ok || !request->directory == !request->revision)
		ok = error_set(err, RLMD_ERROR_USAGE,
			       "rlmd-lister lists files for rlmd, which starts it");
	else
		ok = select_files(request, &include, &exclude, &files, listed, err);
	free(include.all);
	free(exclude.all);
	free(files.all);
	return ok;
}

static void request_done(struct request *request)
{
	selection_free(request->selection);
	free(request->words);
}

/* --- what it does ------------------------------------------------------------------------- */

/* In `ret` new, or NULL where a directory is in none; it is looked for before the seal, for what is
 * above it is closed behind that. */
static bool find_repository(const struct request *request, struct repository **ret,
			    struct rlmd_error *err)
{
	if (request->directory)
		return repository_find(request->directory, ret, err);
	if (!repository_find_any(request->start, ret, err))
		return false;
	return *ret || error_set(err, RLMD_ERROR_INPUT,
				 "git:REV is of the repository that the directory %s is in, and "
				 "there is none; go to one, or put ./ before the name of a file",
				 request->start);
}

/* The directories that are to be read. Alternates, where they are allowed, may be anywhere. */
static bool seal_for(const struct request *request, const struct repository *repository,
		     struct rlmd_error *err)
{
	const char *roots[ROOTS] = {request->directory};

	if (repository) {
		roots[1] = request->directory ? repository->top : NULL;
		roots[2] = repository->git;
		roots[3] = repository->common;
	}
	if (request->options.changes.alternates)
		roots[0] = "/";
	return seal(roots, ROOTS, err);
}

static struct entries *open_entries(const struct request *request, json_t *notes,
				    struct rlmd_error *err)
{
	struct repository *repository;

	if (!find_repository(request, &repository, err))
		return NULL;
	if (!seal_for(request, repository, err)) {
		repository_free(repository);
		return NULL;
	}
	if (request->revision)
		return entries_revision(request->revision, repository, &request->options, notes,
					err);
	repository_free(repository);
	return entries_directory(request->directory, &request->options, notes, err);
}

/* The machine had no descriptor or memory left for an entry: the list would lack it. */
static bool is_wanting(const struct listing_entry *entry, struct rlmd_error *err)
{
	if (entry->kind != LISTING_UNREADABLE ||
	    error_kind_of(entry->error, RLMD_ERROR_INPUT) != RLMD_ERROR_MACHINE)
		return false;
	errno = entry->error;
	error_errno(err, RLMD_ERROR_INPUT, "cannot read '%.200s'", entry->path);
	return true;
}

static bool tell_all(struct entries *entries, struct teller *teller, const json_t *notes,
		     struct rlmd_error *err)
{
	struct listing_entry entry;

	for (unsigned step = 0;; step++) {
		teller_notes(teller, notes);
		if (step % STEPS == 0)
			seal_allow_seconds(LISTER_STEP_SECONDS);
		if (!entries_next(entries, &entry))
			return !entries_failed(entries, err);
		if (is_wanting(&entry, err))
			return false;
		if (entry.kind == LISTING_PASSED && !entry.met)
			continue;
		if (!teller_entry(teller, &entry, err))
			return false;
		step = STEPS - 1;
	}
}

static bool list(struct request *request, struct teller *teller, struct rlmd_error *err)
{
	json_auto_t *notes = json_make_array();
	struct entries *entries;
	bool ok;

	if (!request_read(request, LISTER_REQUEST, err))
		return false;
	user_config_read(NULL); /* who meets a repository hears why not */
	seal_allow_seconds(LISTER_OPEN_SECONDS);
	entries = open_entries(request, notes, err);
	ok = entries && tell_all(entries, teller, notes, err);
	if (!ok)
		teller_notes(teller, notes);
	entries_free(entries);
	return ok;
}

int main(void)
{
	struct teller teller = {.socket = LISTER_ANSWERS};
	struct rlmd_error err = {0};
	struct request request;
	bool ok;

	alloc_install();
	git_libgit2_init();
	(void)!fchdir(LISTER_DIRECTORY);
	close(LISTER_DIRECTORY);
	ok = list(&request, &teller, &err);
	if (ok)
		teller_end(&teller);
	else
		teller_failed(&teller, &err);
	request_done(&request);
	user_config_forget();
#if defined(RLMD_COUNTED)
	return ok ? EXIT_SUCCESS : EXIT_FAILURE; /* what was covered is written */
#else
	_exit(ok ? EXIT_SUCCESS
		 : EXIT_FAILURE); /* no destructors of libraries, which call for more */
#endif
}
