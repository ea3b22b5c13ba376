/*
 * base/json_keys.h - the keys of the objects that are open, so that none is there twice.
 *
 * Keys are lent, as they stand in the text. Takes memory only where there are very many at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

enum { JSON_KEYS_FEW = 32 };

struct json_keys {
	size_t count; /* of all open objects; where an object opens, to be kept for its end */
	/* private */
	size_t room;
	struct rlmd_text few[JSON_KEYS_FEW];
	struct rlmd_text *all; /* `few`, or owned */
};

void json_keys_init(struct json_keys *);
void json_keys_done(struct json_keys *);

void json_keys_add(struct json_keys *, struct rlmd_text key);

/* Takes away those of one object, which came after `count`; `escaped` says that one has an escape.
 * True where one of them is there twice, however it is written. */
bool json_keys_close(struct json_keys *, size_t count, bool escaped);
