/*
 * llm/told.h - what code was told that a clock has a part in, kept beside the exchanges.
 *
 * A block that prints how much time is left makes another request the next time. So a recording
 * keeps such words too, named by what had asked for them and how often that had before, and a
 * replay tells them again. Where a replay has none, what is true now is told.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/text.h"
#include "llm/llm.h"

struct told;
struct keys;

/* Either directory may be NULL. The keys, which nothing that is kept may hold, are lent. */
struct told *told_new(const char *replay_dir, const char *record_dir, const struct keys *);
void told_free(struct told *); /* NULL is fine */

/* Of words that are asked for now: each time another one. */
void told_name(struct told *, struct rlmd_text asked, struct llm_told *ret);

/* The recorded words, new; NULL: there are none. */
char *told_find(const struct told *, const struct llm_told *, size_t *ret_size);

/* Where there is a directory for it; what cannot be kept is only missed by a replay. */
void told_keep(const struct told *, const struct llm_told *, struct rlmd_text words);

/* The JSON that words are kept as, new; and the words of it, new, or NULL. */
json_t *told_write(struct rlmd_text words);
char *told_read(const json_t *, size_t *ret_size);
