/*
 * wire/limit.h - how long the texts of a worker's message may be.
 *
 * Asked when the message's JSON has come and its attachments have not, so that
 * no byte of what is too long is ever taken in. An honest worker keeps the same
 * limits and tells its user: worker/messages.py has the constants too.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/bounds.h"
#include "wire/channel.h"
#include "wire/message.h"

/*
 * `announced` passed message_check() as `type`; `max_output` is what `start`
 * said, in characters. Fails with RLMD_ERROR_WORKER and which field is too long.
 */
bool limit_check(const struct packet *announced, enum message_type, int64_t max_output,
		 struct rlmd_error *);
