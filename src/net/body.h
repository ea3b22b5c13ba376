/*
 * net/body.h - the body of a request, of which long texts are quoted only while it is sent.
 *
 * An adapter says what it consists of. Short texts are written at once. Long ones are lent and stay
 * where they are: a prompt of 100 MB is never copied whole, and goes out as fast as its reader
 * takes it, a piece in each turn of the loop. How long the body will be has to be told before it;
 * counting that is the one thing that needs all of it, and is done in slices too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

struct body;

struct body *body_new(void);
void body_free(struct body *); /* NULL is fine */

/* Appends JSON, as it is. */
void body_add(struct body *, const char *json);
void body_printf(struct body *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends the text as a string; lent until body_free(). */
void body_quote(struct body *, struct rlmd_text);

/* Appends two texts as one string, with an empty line between them; lent likewise. */
void body_quote_both(struct body *, struct rlmd_text first, struct rlmd_text second);

/* Counts on, about `bytes` of the texts; true once body_size() is known. Nothing is added later. */
bool body_measure(struct body *, size_t bytes);
size_t body_size(const struct body *);

/* All of the body, lent, if no text is left to be quoted; else its `bytes` are NULL. */
struct rlmd_text body_whole(struct body *);

/* The next bytes, about as many as fit; 0 at the end. `room` is JSON_QUOTE_ROOM at least. */
size_t body_read(struct body *, char *out, size_t room);
void body_rewind(struct body *);
