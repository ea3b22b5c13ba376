/*
 * pool/translate.h - between the messages of the wire and the structs of pool/worker.h.
 *
 * Knows what message_check() cannot see: which fields depend on each other.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "pool/worker.h"
#include "wire/channel.h"
#include "wire/message.h"

/* A call that was read: `request` lends from the packet and from what stands beside it. */
struct translated_call {
	struct worker_call request;
	struct rlmd_text *texts;   /* owned */
	struct memfile **files;    /* owned, what it holds lent; or NULL */
	struct memfile **contexts; /* owned, `context_count` references */
	size_t context_count;
	struct worker_subset *subsets; /* owned, `context_count`, with their ranges; or NULL */
	size_t *turns;                 /* owned; or NULL */
	const char **models;           /* owned; or NULL */
	size_t weight;                 /* about the bytes that it takes here until it is answered */
};

/* `type` is one of the five calls, `functions` which there are, up to a NULL, or NULL. These fail
 * with RLMD_ERROR_WORKER for a fault of the worker's. */
bool translate_call(const struct packet *, enum message_type, const char *const *functions,
		    struct translated_call *ret, struct rlmd_error *);
void translate_call_done(struct translated_call *);

/* The `done` of block `number`, of no other: fills in all but what only a clock knows. */
bool translate_block(const struct packet *, int64_t number, struct worker_block *ret,
		     struct rlmd_error *);

/* A `value`: fills in the members of the event that are about it. */
bool translate_value(const struct packet *, struct worker_event *ret, struct rlmd_error *);

struct frame *translate_start(const struct worker_options *);
size_t translate_start_memory(
	const struct worker_options *); /* bytes that the inputs need in the worker */
int64_t translate_start_ms(const struct worker_options *); /* the time that it has to load them */
struct frame *translate_exec(int64_t block, struct rlmd_text code);
struct frame *translate_get(const char *name);
struct frame *translate_reply(int64_t id, const struct worker_result *, size_t count);

/* The files of its context that a worker hands on to a sub-run: JSON [input, first, count, ...],
 * whose runs ascend; whether there are such files is not looked at. `ret->ranges` is the caller's
 * to free, also where it fails, with RLMD_ERROR_WORKER. */
bool translate_subset(struct rlmd_text json, struct worker_subset *ret, struct rlmd_error *);
