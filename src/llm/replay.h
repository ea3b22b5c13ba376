/*
 * llm/replay.h - a directory of answers: kept from real calls, or written by hand.
 *
 * A recorder writes one file an exchange, named by the request's hash and who asked it
 * (llm/kept_names.h). A replay finds these again, tells them in the order in which they had come,
 * and else looks through the entries of the directory's other *.json files:
 *
 *   {"match": {"kind": "turn", "depth": 0, "turn": 2, "pattern": "POSIX extended regex"},
 *    "response": {"text": "..." | ["line", ...], "thinking", "finish", "model",
 *                 "usage": {"input", "output"}, "cost": dollars, "delay": ms},
 *    "error": {"kind", "message", "http_status"}, "repeat": false}
 *
 * Every part of a match is optional; the pattern is looked for in the last user message. The first
 * entry that matches is used, once, unless it says "repeat".
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "llm/exchange.h"
#include "llm/llm.h"

struct event_base;
struct replay;
struct replay_order;

/* Reads and checks the scripts; RLMD_ERROR_INPUT names file, entry and field. */
struct replay *replay_new(struct event_base *, const char *dir, struct rlmd_error *);
void replay_free(struct replay *); /* NULL is fine */

/* `ret` becomes the caller's. RLMD_ERROR_REPLAY when nothing matches, and says what was asked. */
bool replay_find(struct replay *, const struct llm_request *, struct exchange *ret,
		 struct rlmd_error *);

/* In which the answers of a recording come; lent. */
struct replay_order *replay_order(const struct replay *);

struct recorder;
struct keys;

/* Makes the directory, for its owner only, where it is missing. The keys are lent. */
struct recorder *recorder_new(const char *dir, const struct keys *, struct rlmd_error *);
void recorder_free(struct recorder *); /* NULL is fine */

/* The name under which a request that starts now will be kept; new. */
char *recorder_name(struct recorder *, const struct llm_request *);

/* Keeps an exchange, all or nothing, with every occurrence of a key replaced; or one that was
 * cancelled, with what it had used. */
bool recorder_write(struct recorder *, const char *name, const struct llm_request *,
		    const struct llm_response *, bool cancelled,
		    const struct rlmd_error *exchange_error, struct rlmd_error *);
