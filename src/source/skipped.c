#include "source/skipped.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"

enum {
	NAMES_SHOWN = 5,  /* of one kind */
	ALL_MAX = 100000, /* names that are kept */
	SECRETS_SHOWN = 20,
};

static const struct {
	const char *name; /* in lists */
	const char *one, *many, *advice;
	size_t shown; /* names, at most */
} kinds[] = {
	[SKIP_SECRET] = {"secret", "file that looks like a secret", "files that look like secrets",
			 "; to send one, name it itself", SECRETS_SHOWN},
	[SKIP_BINARY] = {"binary", "binary file", "binary files", "", NAMES_SHOWN},
	[SKIP_SPECIAL] = {"special", "socket, device or FIFO", "sockets, devices or FIFOs", "",
			  NAMES_SHOWN},
	[SKIP_LINK] = {"link", "symbolic link", "symbolic links", "", NAMES_SHOWN},
	[SKIP_UNREADABLE] = {"unreadable", "entry that cannot be read",
			     "entries that cannot be read", "", NAMES_SHOWN},
	[SKIP_UNRULED] =
		{"unruled",
		 "directory whose .gitignore files are more than 2 MiB or cannot be read",
		 "directories whose .gitignore files are more than 2 MiB or cannot be read", "",
		 NAMES_SHOWN},
	[SKIP_GENERATED] = {"generated", "generated file", "generated files", "", NAMES_SHOWN},
	[SKIP_VENDORED] = {"vendored", "vendored file", "vendored files", "", NAMES_SHOWN},
	[SKIP_IGNORED] = {"ignored", "file that .rlmdignore leaves out",
			  "files that .rlmdignore leaves out", "", NAMES_SHOWN},
	[SKIP_OUTPUTS] = {"outputs", "notebook's outputs", "notebooks' outputs",
			  "; to send them, name the notebook itself", NAMES_SHOWN},
	[SKIP_SUBMODULE] = {"submodule", "repository of its own", "repositories of their own",
			    "; to send submodules, give recurse-submodules", NAMES_SHOWN},
	[SKIP_LARGE] = {"large", "large file", "large files",
			"; to send larger ones, give a higher max-file-size", NAMES_SHOWN},
	[SKIP_MISSING] = {"missing", "name that no file has", "names that no file has", "",
			  NAMES_SHOWN},
	[SENT_SECRET] = {"sent", "file that looks like a secret", "files that look like secrets",
			 "; allow-secrets says so", SECRETS_SHOWN},
};

enum skip skipped_kind(enum listing_kind kind)
{
	switch (kind) {
	case LISTING_LINK:
		return SKIP_LINK;
	case LISTING_SPECIAL:
		return SKIP_SPECIAL;
	case LISTING_UNRULED:
		return SKIP_UNRULED;
	case LISTING_GENERATED:
		return SKIP_GENERATED;
	case LISTING_VENDORED:
		return SKIP_VENDORED;
	case LISTING_IGNORED:
		return SKIP_IGNORED;
	case LISTING_SUBMODULE:
		return SKIP_SUBMODULE;
	case LISTING_LARGE:
		return SKIP_LARGE;
	case LISTING_PASSED:
	case LISTING_FILE:
	case LISTING_UNREADABLE:
	case LISTING_DELETED:
		break;
	}
	return SKIP_UNREADABLE;
}

static void keep(struct skipped *skipped, enum skip kind, const char *label)
{
	if (kind == SENT_SECRET)
		return;
	if (!skipped->all)
		skipped->all = json_make_array();
	if (json_array_size(skipped->all) < ALL_MAX)
		json_append(skipped->all,
			    json_make("{s:o, s:i}", "path", json_from_text(text_of(label)),
				      "reason", kind));
}

bool skipped_get(const json_t *all, size_t index, const char **ret_path, const char **ret_reason)
{
	const json_t *one = json_array_get(all, index);

	if (!one)
		return false;
	*ret_path = json_get_string(one, "path");
	*ret_reason = kinds[json_get_integer(one, "reason", 0)].name;
	return true;
}

void skipped_add(struct skipped *skipped, enum skip kind, const char *label, const char *why)
{
	char **names = &skipped->of[kind].names;
	size_t count = skipped->of[kind].count++;
	char safe[256];
	char *longer;

	keep(skipped, kind, label);
	if (count >= kinds[kind].shown)
		return;
	text_escape(text_of(label), safe, sizeof safe);
	longer = xasprintf("%s%s%s%s%s%s", *names ? *names : "", *names ? ", " : "", safe,
			   why ? " (" : "", why ? why : "", why ? ")" : "");
	free(*names);
	*names = longer;
}

static void leave_out(char **left_out, size_t count, const char *what)
{
	auto_free char *before = take_pointer(left_out);

	*left_out = xasprintf("%s%s%zu %s", before ? before : "", before ? ", " : "", count, what);
}

void skipped_tell(struct skipped *skipped, const char *directory, json_t *notes, char **left_out)
{
	for (size_t i = 0; i < SKIP_KINDS; i++) {
		size_t count = skipped->of[i].count;
		auto_free char *names = take_pointer(&skipped->of[i].names);
		const char *what = count == 1 ? kinds[i].one : kinds[i].many;
		auto_free char *note = NULL;

		skipped->of[i].count = 0;
		if (!count)
			continue;
		note = xasprintf("%s: %s %zu %s: %s%s%s", directory,
				 i == SENT_SECRET ? "sends" : "skipped", count, what, names,
				 count > kinds[i].shown ? ", ..." : "", kinds[i].advice);
		json_append(notes, json_from_text(text_of(note)));
		if (i != SENT_SECRET)
			leave_out(left_out, count, what);
	}
}

void skipped_done(struct skipped *skipped)
{
	for (size_t i = 0; i < SKIP_KINDS; i++)
		free(skipped->of[i].names);
	json_decref(skipped->all);
}
