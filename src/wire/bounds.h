/*
 * wire/bounds.h - the figures that both sides of the protocol keep to.
 *
 * Of plain C, for the supervisor, for the worker's native half, and for
 * worker/generate_messages.py, which reads them. docs/protocol.md says what is beyond each.
 */
#pragma once

#include <stdint.h>

/* Of a frame. */
enum {
	FRAME_MAX = 1 << 20,     /* bytes of JSON */
	ATTACHMENTS_MAX = 10000, /* behind it */
	/* Longer texts travel as attachments: from here on that costs less than quoting them. */
	TEXT_INLINE_MAX = 1 << 10,

	/* The weight of attachments: their bytes, and this much for the bookkeeping of each. */
	ATTACHMENT_WEIGHT = 8 << 10,
	ATTACHED_MAX = 128 << 20, /* weight after one frame, and of what one worker has under way */
};

/* Of a message. */
enum {
	STRING_MAX = 256,        /* bytes of a STRING */
	ELEMENTS_MAX = 10000,    /* of an array */
	ANSWER_MAX = 16 << 20,   /* bytes of an answer, or of a variable's value */
	REPORT_MAX = 1 << 20,    /* of a list of variables, or why they could not be made */
	PROMPTS_MAX = 64 << 20,  /* of all prompts, all tasks, or the plan, of one call */
	ARGUMENTS_MAX = 1 << 20, /* of the arguments of one call of a function: a REPORT */
};

/* Bounds of those arguments, as JSON. */
enum {
	ARGUMENTS_DEPTH = 32,
	ARGUMENTS_VALUES = 100000, /* members and elements */
};

#define INTEGER_MAX (INT64_C(1) << 53) /* what JSON readers of all kinds keep exactly */

/* Bounds that a call may set for its answers. */
enum {
	ANSWER_TOKENS_MAX = 100000000,
	TEMPERATURE_MAX = 2000, /* thousandths */
};
