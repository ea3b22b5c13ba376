/*
 * llm/recording.h - what is kept of a job's exchanges with models, and found again.
 *
 * It stands before every provider: what is found here asks nobody, and what is kept is kept of all
 * of them, with each one's key replaced.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "llm/exchange.h"
#include "llm/llm.h"

struct event_base;
struct recording;
struct replay_order;
struct told;

/* NULL directories: off. RLMD_ERROR_INPUT for a bad script, and a directory that cannot be used. */
struct recording *recording_new(struct event_base *, const char *record_dir, const char *replay_dir,
				struct rlmd_error *);
void recording_free(struct recording *); /* NULL is fine */

bool recording_replays(const struct recording *);
bool recording_keeps(const struct recording *); /* or replays */

/* A key that nothing which is kept may hold; NULL is fine. */
void recording_hide(struct recording *, const char *key);

/* The answer; RLMD_ERROR_REPLAY for what is not there. `ret` becomes the caller's. */
bool recording_find(struct recording *, const struct llm_request *, struct exchange *ret,
		    struct rlmd_error *);

/* The name under which a request that starts now will be kept, new; NULL: it will not. */
char *recording_name(struct recording *, const struct llm_request *);
/* As recorder_write(). */
bool recording_write(struct recording *, const char *name, const struct llm_request *,
		     const struct llm_response *, bool cancelled,
		     const struct rlmd_error *exchange_error, struct rlmd_error *);

/* It was not wanted any more, and had used that: a replay answers nothing in its place. */
void recording_cancel(struct recording *, const char *name, const struct llm_request *,
		      const struct llm_usage *, int64_t cost);

/* Of what recording_find() finds; lent. */
struct replay_order *recording_order(const struct recording *);

/* Words that a clock has a part in (llm/told.h); lent. */
struct told *recording_told(const struct recording *);
