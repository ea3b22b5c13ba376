/*
 * llm/recording.h - a directory of exchanges: recorded, or replayed.
 *
 * One JSON file for each exchange, ID-POSITION-N.json: the request's hash, the hash of who asked it
 * (llm_request.position), and how often it had asked that before. So each of several runs that ask
 * the same at once is given its own answer again, whichever comes first. Where nobody has asked it
 * from there, any answer to the same request will do that is not taken yet: code whose threads call
 * at once has another position each time. ID-N.json has a value that code got from a clock or the
 * host. Other files are scripts (llm/scripted.h), which answer what is in no such file.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "llm/exchange.h"

struct event_base;
struct key_list;
struct recording;

/*
 * Makes the directory to record in, for its owner only; reads the names and the scripts of the one
 * to replay. Either may be NULL. The keys, which no file may hold, are lent. RLMD_ERROR_USAGE for a
 * directory that cannot be written, RLMD_ERROR_INPUT for one that cannot be read, and for a bad
 * script, with file, entry and field.
 */
struct recording *recording_new(struct event_base *, const char *record_dir, const char *replay_dir,
				const struct key_list *, struct rlmd_error *);
void recording_free(struct recording *); /* no turn may wait; NULL is fine */

bool recording_replays(const struct recording *);

/* The exchange of that name, or of a script; `ret` becomes the caller's. RLMD_ERROR_REPLAY says
 * what was asked, and where it differs from what was recorded in its place. */
bool recording_find(struct recording *, const char *name, const struct llm_request *,
		    struct exchange *ret, struct rlmd_error *);

bool recording_records(const struct recording *);

/* An exchange on its way into the directory it records in, all or nothing, with every occurrence of
 * a key replaced; or one that was cancelled, with what it had used. All is lent until it is freed.
 * NULL: RLMD_ERROR_INPUT. */
struct exchange_file *recording_keep(struct recording *, const char *name,
				     const struct llm_request *, const struct llm_response *,
				     bool cancelled, const struct rlmd_error *failure,
				     struct rlmd_error *);

/* The JSON of a value, new, or NULL; and one to keep. A replay lacks a value that cannot be kept.
 */
json_t *recording_find_value(const struct recording *, const char *id, int64_t number);
void recording_keep_value(const struct recording *, const char *id, int64_t number, const json_t *);

/*
 * Answers of a replay come in the order in which they had come, for which of two calls ends first
 * may decide what happens next: who wins a race, what is cancelled. Where one is missing that
 * should be next, as the replay is asked something else than the recording was, the others wait for
 * it a moment and no longer.
 *
 * An answer that waits for its turn; embed it. Zero waits for nothing.
 */
struct recording_turn {
	struct recording *recording; /* lent; NULL: it does not wait */
	int64_t order;               /* as of the exchange */
	void (*come)(void *owner);   /* its turn is now; from the loop */
	void *owner;                 /* lent */
	TAILQ_ENTRY(recording_turn) entry;
};

/* `order`, `come` and `owner` are set. Never comes before this returns. */
void recording_wait(struct recording *, struct recording_turn *);
void recording_leave(struct recording_turn *); /* one that does not wait is fine */
