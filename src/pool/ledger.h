/*
 * pool/ledger.h - the calls of one worker that nobody has answered yet.
 *
 * They are few by construction: whoever notes them stops reading when it is full.
 * What a call weighs is what is kept of it until then, in bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LEDGER_CALLS_MAX = 64,
	LEDGER_WEIGHT_MAX = 32 << 20, /* bytes that they take here; the last may exceed it */
};

/* Embed it; zero is empty. */
struct ledger {
	struct {
		int64_t id;
		size_t weight;
	} calls[LEDGER_CALLS_MAX];
	size_t count, weight;
};

bool ledger_add(struct ledger *, int64_t id, size_t weight); /* false: `id` is in it; not full */
bool ledger_remove(struct ledger *, int64_t id);             /* false: it is not in it */
bool ledger_full(const struct ledger *);
/* What may be attached to a further call; to the first one as much as a frame may have. */
size_t ledger_room(const struct ledger *);
