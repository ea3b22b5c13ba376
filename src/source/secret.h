/*
 * source/secret.h - what looks like a secret, by the name of a file or by what is in it.
 *
 * The table is source/secrets.def. A text is read once, whatever is in it.
 */
#pragma once

#include "base/text.h"

/* A token is known as one by so many bytes: pieces of a text that overlap by these hide none. */
enum { SECRET_SPAN = 256 };

/* The kind of secret that a file is by its path ("an SSH key"; static), or NULL. `text` is the
 * beginning of it. */
const char *secret_by_name(const char *path, struct rlmd_text text);

/* The kind of secret in a text ("a GitHub token"; static), or NULL. */
const char *secret_in_text(struct rlmd_text);
