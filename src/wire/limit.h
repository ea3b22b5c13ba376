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
#include "wire/channel.h"
#include "wire/message.h"

enum {
	STRING_MAX = 256,        /* bytes of a STRING */
	ELEMENTS_MAX = 10000,    /* of an array */
	ANSWER_MAX = 16 << 20,   /* bytes of an answer, or of a variable's value */
	REPORT_MAX = 1 << 20,    /* of a list of variables, or why they could not be made */
	PROMPTS_MAX = 64 << 20,  /* of all prompts, all tasks, or the plan, of one call */
	ARGUMENTS_MAX = 1 << 20, /* of the arguments of one call of a function: a REPORT */
};

/* What those arguments may be, as JSON. */
enum {
	ARGUMENTS_DEPTH = 32,
	ARGUMENTS_VALUES = 100000, /* members and elements */
};

#define INTEGER_MAX (INT64_C(1) << 53) /* what JSON readers of all kinds keep exactly */

/* What a call may ask of its answers. */
enum {
	ANSWER_TOKENS_MAX = 100000000,
	TEMPERATURE_MAX = 2000, /* thousandths */
};

/*
 * `announced` passed message_check() as `type`; `max_output` is what `start`
 * said, in characters. Fails with RLMD_ERROR_WORKER and which field is too long.
 */
bool limit_check(const struct packet *announced, enum message_type, int64_t max_output,
		 struct rlmd_error *);
