/*
 * wire/message.h - which message may be said by whom, when, and with what in it.
 *
 * The table is wire/messages.def.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "wire/channel.h"

enum message_type {
#define MESSAGE(name, wire, from, states, meaning) MESSAGE_##name,
#define FIELD(message, key, type, bound, meaning)
#include "wire/messages.def"
#undef MESSAGE
#undef FIELD
	MESSAGE_TYPES
};

enum message_sender { MESSAGE_FROM_SUPERVISOR, MESSAGE_FROM_WORKER };

/* The state of a worker, as far as its messages tell. */
enum worker_state {
	WORKER_STARTING, /* before `ready`: nothing is known of its walls */
	WORKER_LOADING,  /* before `started` */
	WORKER_IDLE,     /* waits for a block */
	WORKER_BUSY,     /* runs one */
	WORKER_ASKED,    /* renders a variable */
};

const char *message_name(enum message_type);

/*
 * Whether the packet is a message that `from` may send in `state`, with exactly
 * its fields, each of its type, and every attachment used once. Fails with
 * RLMD_ERROR_WORKER and what is wrong; a worker that fails here is killed, not told.
 */
bool message_check(const struct packet *, enum message_sender from, enum worker_state state,
		   enum message_type *ret_type, struct rlmd_error *);
