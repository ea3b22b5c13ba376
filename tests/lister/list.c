/*
 * The listing of a directory: for each path a line of "kind path", which ends in NUL. Before the
 * directory: -s for submodules too, -t for what is in the index alone, -iSPEC to include, -xSPEC to
 * exclude, -fNAME for a list.
 */
#include <git2.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "lister/listing.h"
#include "lister/user_config.h"

static const char kinds[] = {
	[LISTING_PASSED] = '-',    [LISTING_FILE] = 'f',       [LISTING_LINK] = 'l',
	[LISTING_SPECIAL] = '*',   [LISTING_UNREADABLE] = '?', [LISTING_UNRULED] = '!',
	[LISTING_GENERATED] = 'g', [LISTING_VENDORED] = 'v',   [LISTING_SUBMODULE] = 's',
};

static const char *include[64], *exclude[64], *files[64];

static void take_options(int argc, char **argv, struct selection_options *wanted,
			 struct listing_options *options)
{
	*wanted = (struct selection_options){.include = include, .exclude = exclude};
	for (int i = 1; i < argc - 1; i++) {
		const char *value = argv[i] + 2;

		if (argv[i][1] == 's')
			options->recurse_submodules = true;
		else if (argv[i][1] == 't')
			options->tracked_only = true;
		else if (argv[i][1] == 'i')
			include[wanted->include_count++] = value;
		else if (argv[i][1] == 'x')
			exclude[wanted->exclude_count++] = value;
		else
			files[wanted->file_count++] = value;
	}
	if (wanted->file_count)
		wanted->files = files;
}

static int fail(json_t *notes, struct selection *selection, const struct rlmd_error *err)
{
	fprintf(stderr, "%s\n", err->text);
	json_decref(notes);
	selection_free(selection);
	user_config_forget();
	git_libgit2_shutdown();
	return 8;
}

int main(int argc, char **argv)
{
	struct listing_options options = {0};
	struct selection_options wanted;
	json_t *notes = json_array();
	struct listing_entry entry;
	struct listing *listing;
	struct rlmd_error err = {0};
	const char *missing;
	size_t at = 0;

	alloc_install();
	git_libgit2_init();
	take_options(argc, argv, &wanted, &options);
	options.selection = selection_new(&wanted, &err);
	listing = options.selection ? listing_new(argv[argc - 1], &options, notes, &err) : NULL;
	if (!listing)
		return fail(notes, options.selection, &err);
	while (listing_next(listing, &entry))
		if (entry.kind != LISTING_PASSED)
			printf("%c %s%c", kinds[entry.kind], entry.path, '\0');
	for (size_t i = 0; i < json_array_size(notes); i++)
		fprintf(stderr, "%s\n", json_string_value(json_array_get(notes, i)));
	while ((missing = selection_missing(options.selection, &at)))
		fprintf(stderr, "missing %s\n", missing);
	listing_free(listing);
	selection_free(options.selection);
	json_decref(notes);
	user_config_forget();
	git_libgit2_shutdown();
	return 0;
}
