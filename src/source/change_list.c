#include "source/change_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "source/secret.h"

static bool holds_secret(json_t *hunks)
{
	const char *text;
	json_t *hunk;
	size_t i;

	json_array_foreach (hunks, i, hunk) {
		text = json_string_value(json_object_get(hunk, "text"));
		if (text && secret_in_text(text_of(text)))
			return true;
	}
	return false;
}

void change_list_add(struct change_list *list, const char *path, const char *status, json_t *hunks,
		     bool allowed)
{
	bool kept = hunks && !allowed && holds_secret(hunks);

	list->secrets += kept;
	json_array_append_new(list->changes,
			      json_pack("{s: s, s: s, s: o}", "path", path, "status", status,
					"hunks",
					hunks && !kept ? json_incref(hunks) : json_array()));
}

static int compare_changes(const void *a, const void *b)
{
	return strcmp(json_string_value(json_object_get(*(json_t *const *)a, "path")),
		      json_string_value(json_object_get(*(json_t *const *)b, "path")));
}

/* What is gone is known last, and belongs between the others. */
static void sort(struct change_list *list)
{
	size_t count = json_array_size(list->changes), i;
	json_t **changes = xcalloc(count + 1, sizeof(json_t *)), *change;

	json_array_foreach (list->changes, i, change)
		changes[i] = json_incref(change);
	qsort(changes, count, sizeof(json_t *), compare_changes);
	json_array_clear(list->changes);
	for (i = 0; i < count; i++)
		json_array_append_new(list->changes, changes[i]);
	free(changes);
}

char *change_list_text(struct change_list *list)
{
	sort(list);
	return json_dumps(list->changes, JSON_COMPACT);
}

void change_list_done(struct change_list *list)
{
	json_decref(list->changes);
}
