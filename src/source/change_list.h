/*
 * source/change_list.h - the changes of an input, as its code and its user are told of them.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/text.h"

struct change_list {
	json_t *changes; /* owned; NULL: nothing is compared */
	size_t secrets;  /* changes whose hunks are kept back */
};

/* `path` is ready to be shown. Hunks in which a secret stands or stood are left out, unless they
 * are `allowed`; NULL: there are none. */
void change_list_add(struct change_list *, const char *path, const char *status, json_t *hunks,
		     bool allowed);

/* New: what file_index_set_changes() takes. */
char *change_list_text(struct change_list *);
void change_list_done(struct change_list *);
