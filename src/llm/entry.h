/*
 * llm/entry.h - an exchange as it is written to a file: JSON, and a line feed.
 *
 * What was asked and answered may be megabytes. No tree is made of them and no copy: they are
 * quoted into a piece of 64 KiB, keys are taken out of that, and it is written, before the next
 * one. New memory for all of it would take the kernel longer than all else does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct body;
struct keys;
struct llm_request;
struct llm_response;

/* A whole recording, new; all is lent until body_free(). `err` is NULL for an answer. A negative
 * `order` says that it was cancelled. */
struct body *entry_of_exchange(const struct llm_request *, const struct llm_response *,
			       const struct rlmd_error *err, int64_t order);

/* Nothing but an answer that came to its end, likewise: as exchange_answer() has it. */
struct body *entry_of_answer(const struct llm_response *);

/* Is told of each piece that was written. */
typedef void entry_piece_fn(void *owner, struct rlmd_text piece);

/* Writes all of it without the keys. `fn` may be NULL. RLMD_ERROR_INPUT. */
bool entry_write(struct body *, const struct keys *, int fd, entry_piece_fn *fn, void *owner,
		 struct rlmd_error *);
