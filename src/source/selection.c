#include "source/selection.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "source/wildmatch.h"

struct spec {
	char *text;              /* owned */
	struct wildmatch *match; /* owned; NULL: no wildcards */
	bool fold, exclude;
};

struct wanted_file {
	char *path; /* owned */
	bool met;
};

struct selection {
	struct spec *specs; /* owned */
	size_t spec_count;
	bool includes;             /* some spec does */
	struct wanted_file *files; /* owned, sorted; NULL: there is no list */
	size_t file_count;
};

/* --- making --------------------------------------------------------------------------- */

struct magic {
	bool glob, literal, fold, exclude;
};

static bool take_word(struct rlmd_text word, struct magic *magic)
{
	if (text_equal(word, "glob"))
		magic->glob = true;
	else if (text_equal(word, "literal"))
		magic->literal = true;
	else if (text_equal(word, "icase"))
		magic->fold = true;
	else if (text_equal(word, "exclude"))
		magic->exclude = true;
	else
		return !word.size || text_equal(word, "top");
	return true;
}

/* ":(glob,icase)rest", ":!rest", ":/rest"; moves on to the rest. */
static bool take_magic(const char **pattern, struct magic *magic)
{
	const char *at = *pattern, *end;

	if (*at != ':')
		return true;
	at++;
	if (*at != '(') {
		for (; *at && strchr("!^/", *at); at++)
			magic->exclude |= *at != '/';
		*pattern = at + (*at == ':');
		return true;
	}
	end = strchr(at, ')');
	while (end && at < end) {
		size_t size = strcspn(++at, ",)");

		if (!take_word(text_from(at, size), magic))
			return false;
		at += size;
	}
	*pattern = end ? end + 1 : at;
	return end;
}

static const char *without_dot(const char *path)
{
	while (path[0] == '.' && path[1] == '/') {
		path += 2;
		path += strspn(path, "/");
	}
	return strcmp(path, ".") ? path : "";
}

static bool add_spec(struct selection *selection, const char *given, bool exclude,
		     struct rlmd_error *err)
{
	struct magic magic = {.exclude = false};
	const char *pattern = given;
	struct spec *spec;

	if (!take_magic(&pattern, &magic) || (magic.glob && magic.literal) || !*given)
		return error_set(
			err, RLMD_ERROR_USAGE,
			"'%s' is no pathspec: see 'git help glossary'; known are :!, glob, "
			"icase, literal, exclude and top",
			given);
	spec = &selection->specs[selection->spec_count++];
	spec->text = xstrdup(without_dot(pattern));
	spec->fold = magic.fold;
	spec->exclude = magic.exclude != exclude;
	if (!magic.literal && strpbrk(spec->text, "*?[\\"))
		spec->match = wildmatch_new(text_of(spec->text),
					    (magic.glob ? WILDMATCH_PATH : 0) |
						    (magic.fold ? WILDMATCH_FOLD : 0));
	selection->includes |= !spec->exclude;
	return true;
}

static int compare_files(const void *a, const void *b)
{
	return strcmp(((const struct wanted_file *)a)->path, ((const struct wanted_file *)b)->path);
}

static bool is_inside(const char *path)
{
	if (*path == '/')
		return false;
	for (const char *part = path; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (!strncmp(part, "..", 2) && (!part[2] || part[2] == '/'))
			return false;
	}
	return true;
}

static bool add_file(struct selection *selection, const char *given, struct rlmd_error *err)
{
	const char *path = without_dot(given);
	size_t size = strlen(path);
	char safe[160];

	if (!is_inside(path)) {
		text_escape(text_of(given), safe, sizeof safe);
		return error_set(err, RLMD_ERROR_INPUT,
				 "the list names %s, which is not below the directory: names are "
				 "taken from there on",
				 safe);
	}
	while (size && path[size - 1] == '/')
		size--;
	selection->files[selection->file_count++].path = xstrndup(path, size);
	return true;
}

struct selection *selection_new(const struct selection_options *options, struct rlmd_error *err)
{
	struct selection *selection = xcalloc(1, sizeof *selection);
	bool ok = true;

	selection->specs = xcalloc(options->include_count + options->exclude_count + 1,
				   sizeof *selection->specs);
	for (size_t i = 0; ok && i < options->include_count; i++)
		ok = add_spec(selection, options->include[i], false, err);
	for (size_t i = 0; ok && i < options->exclude_count; i++)
		ok = add_spec(selection, options->exclude[i], true, err);
	if (options->files)
		selection->files = xcalloc(options->file_count + 1, sizeof *selection->files);
	for (size_t i = 0; ok && options->files && i < options->file_count; i++)
		ok = add_file(selection, options->files[i], err);
	if (selection->file_count)
		qsort(selection->files, selection->file_count, sizeof *selection->files,
		      compare_files);
	if (ok)
		return selection;
	selection_free(selection);
	return NULL;
}

void selection_free(struct selection *selection)
{
	if (!selection)
		return;
	for (size_t i = 0; i < selection->spec_count; i++) {
		free(selection->specs[i].text);
		wildmatch_free(selection->specs[i].match);
	}
	for (size_t i = 0; i < selection->file_count; i++)
		free(selection->files[i].path);
	free(selection->specs);
	free(selection->files);
	free(selection);
}

/* --- the list -------------------------------------------------------------------------- */

/* The first name that is not before so much of `path`. */
static size_t find(const struct selection *selection, const char *path, size_t size)
{
	size_t low = 0, high = selection->file_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const char *name = selection->files[middle].path;
		int order = strncmp(name, path, size);

		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Whether so much of `path`, without a slash at its end, is a name itself. */
static bool has(const struct selection *selection, const char *path, size_t size, size_t *ret)
{
	*ret = find(selection, path, size);
	return *ret < selection->file_count && !strncmp(selection->files[*ret].path, path, size) &&
	       !selection->files[*ret].path[size];
}

/* The path, or a directory that it is in; all of them where the list has the first of all. */
static bool is_covered(const struct selection *selection, const char *path)
{
	const char *slash = path;
	size_t at;

	if (has(selection, "", 0, &at))
		return true;
	while ((slash = strchr(slash, '/'))) {
		if (has(selection, path, (size_t)(slash - path), &at))
			return true;
		slash++;
	}
	return has(selection, path, strlen(path), &at);
}

bool selection_names(const struct selection *selection, const char *path)
{
	size_t size = strlen(path), at;

	if (!selection->files)
		return false;
	if (!size || path[size - 1] != '/')
		return has(selection, path, size, &at);
	at = find(selection, path, size);
	return at < selection->file_count && !strncmp(selection->files[at].path, path, size);
}

bool selection_enters(const struct selection *selection, const char *path)
{
	return !selection->files || selection_names(selection, path) || is_covered(selection, path);
}

/* The path, and the directories that it is in, though there may be many names between. */
void selection_meet(struct selection *selection, const char *path)
{
	const char *slash = path;
	size_t at;

	while ((slash = strchr(slash, '/'))) {
		if (has(selection, path, (size_t)(slash - path), &at))
			selection->files[at].met = true;
		slash++;
	}
	if (has(selection, path, strlen(path), &at))
		selection->files[at].met = true;
	if (has(selection, "", 0, &at))
		selection->files[at].met = true;
}

const char *selection_missing(const struct selection *selection, size_t *at)
{
	while (*at < selection->file_count) {
		const struct wanted_file *file = &selection->files[(*at)++];

		if (!file->met && (*at == 1 || strcmp(file->path, file[-1].path) != 0))
			return file->path;
	}
	return NULL;
}

/* --- pathspecs --------------------------------------------------------------------------- */

static bool applies(const struct spec *spec, const char *path)
{
	size_t size = strlen(spec->text);
	struct rlmd_text text = text_of(path);
	bool begins = spec->fold ? text_starts_caseless(text, spec->text)
				 : text_starts(text, spec->text);

	if (begins && (!size || !path[size] || path[size] == '/' || spec->text[size - 1] == '/'))
		return true;
	return spec->match && wildmatch_matches(spec->match, text);
}

bool selection_wants(const struct selection *selection, const char *path)
{
	bool wanted = !selection->includes;

	if (selection->files && !is_covered(selection, path))
		return false;
	for (size_t i = 0; i < selection->spec_count; i++) {
		const struct spec *spec = &selection->specs[i];

		if (!spec->exclude && wanted)
			continue;
		if (!applies(spec, path))
			continue;
		if (spec->exclude)
			return false;
		wanted = true;
	}
	return wanted;
}
