/*
 * llm/key.h - a provider's key: where it comes from, and that it leaves no trace.
 *
 * A key is an owned string. It is never logged, never put into an error's text, and its memory is
 * wiped when it goes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

struct evbuffer;
struct bytes;

/*
 * The key in a file: a regular one that nobody else may read, RLMD_ERROR_AUTH otherwise. White
 * space at both ends is not part of it.
 */
char *key_read_file(const char *path, struct rlmd_error *);

/* The first of the NULL-terminated `names` that is set and not empty; NULL: there is none, or no
 * names. The environment stays as it is. */
char *key_from_environment(const char *const *names);

/* Whether it may stand in a header: printable ASCII without a space. RLMD_ERROR_AUTH names
 * `origin`. */
bool key_check(const char *key, const char *origin, struct rlmd_error *);

/*
 * Replaces every occurrence in `text` by "***", a cut one at its end too; returns the new length.
 * A NULL key is fine.
 */
size_t key_redact(const char *key, char *text, size_t size);

/*
 * All of an answer, lent until it changes, with every whole occurrence replaced likewise.
 * A key of fewer than 12 characters is left: "dummy", "ollama" and what else local servers take
 * are words that answers have.
 */
struct rlmd_text key_redact_answer(const char *key, struct bytes *answer);

/*
 * As much of a piece of an answer as can be told before what follows is known, with every whole
 * occurrence replaced likewise, to `out`; all of it where nothing follows. Returns how many bytes
 * of the piece that were: the others are to be handed in again, with what follows.
 */
size_t key_redact_piece(const char *key, struct rlmd_text piece, bool whole, struct evbuffer *out);

void key_free(char *key); /* wipes; NULL is fine */

/* Several, of which none is to be seen. Zero is none; embed it. */
struct key_list {
	char **keys; /* owned */
	size_t count;
};

void key_list_add(struct key_list *, const char *key); /* a copy, once; NULL is fine */
size_t key_list_redact(const struct key_list *, char *text,
		       size_t size); /* as key_redact(), of each */

/* Of a text that comes in pieces: every whole occurrence of each; and how many bytes at the end of
 * a piece may be the beginning of one. */
size_t key_list_redact_inside(const struct key_list *, char *text, size_t size);
size_t key_list_longest(const struct key_list *);
void key_list_done(struct key_list *); /* wipes */
