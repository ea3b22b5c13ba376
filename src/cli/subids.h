/*
 * cli/subids.h - whether the ids of workers were given to somebody else.
 *
 * /etc/subuid and /etc/subgid say which ids a user may use in user namespaces of his own,
 * and so for processes and files of his.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/text.h"

/*
 * Appends a sentence to `warnings` for each line "name:first:count" of such a file, whose name
 * is `path`, that has any of `count` ids from `first` on. Other lines are passed over.
 */
void subids_check(const char *path, struct rlmd_text content, uint32_t first, uint32_t count,
		  json_t *warnings);

/* Of both files; one that is missing gives nothing to anybody. */
void subids_check_all(uint32_t first, uint32_t count, json_t *warnings);
