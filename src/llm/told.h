/*
 * llm/told.h - what code was told that a clock has a part in, kept beside the exchanges.
 *
 * A block that prints how much time is left makes another request the next time. So a recording
 * keeps such words too, named by what had asked for them and how often that had before, and a
 * replay tells them again. Where a replay has none, what is true now is told.
 */
#pragma once

#include <stddef.h>

#include "base/text.h"

struct told;
struct keys;

/* Either directory may be NULL. The keys, which nothing that is kept may hold, are lent. */
struct told *told_new(const char *replay_dir, const char *record_dir, const struct keys *);
void told_free(struct told *); /* NULL is fine */

/*
 * The words to tell, owned, with their size in `size`: `words`, which are taken, or the recorded
 * ones. What cannot be kept is only missed by a replay.
 */
char *told_again(struct told *, struct rlmd_text asked, char *words, size_t *size);
