/*
 * What is listed of a directory: for each path a line of "kind path", which ends in NUL. With
 * "-s" before the directory submodules are listed too.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "source/listing.h"

static const char kinds[] = {
	[LISTING_PASSED] = '-',   [LISTING_FILE] = 'f',       [LISTING_LINK] = 'l',
	[LISTING_SPECIAL] = '*',  [LISTING_UNREADABLE] = '?', [LISTING_GENERATED] = 'g',
	[LISTING_VENDORED] = 'v', [LISTING_SUBMODULE] = 's',
};

int main(int argc, char **argv)
{
	struct listing_options options = {.recurse_submodules = argc > 2};
	json_t *notes = json_array();
	struct listing_entry entry;
	struct listing *listing;
	struct rlmd_error err = {0};

	alloc_install();
	listing = listing_new(argv[argc - 1], &options, notes, &err);
	if (!listing) {
		fprintf(stderr, "%s\n", err.text);
		json_decref(notes);
		return 8;
	}
	while (listing_next(listing, &entry))
		if (entry.kind != LISTING_PASSED)
			printf("%c %s%c", kinds[entry.kind], entry.path, '\0');
	for (size_t i = 0; i < json_array_size(notes); i++)
		fprintf(stderr, "%s\n", json_string_value(json_array_get(notes, i)));
	listing_free(listing);
	json_decref(notes);
	return 0;
}
