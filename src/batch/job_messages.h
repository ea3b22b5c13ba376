/*
 * batch/job_messages.h - a conversation of OpenAI's Chat Completions as a task and its context.
 *
 * The last message of the user is the task; all others are the context, in their order, each under
 * its role ("system:"). Texts only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/json_view.h"

struct job_messages {
	char *task; /* owned by whoever asked, as is the context */
	size_t task_size;
	char *context; /* NULL: there is no other message */
	size_t context_size;
	struct json_view model;  /* lent by the body; NONE: it is not said */
	struct json_view schema; /* likewise, of response_format */
	const char *ignored;     /* the first member without effect; static, or NULL */
};

/* The body of a request. RLMD_ERROR_INPUT names the member. */
bool job_messages_read(struct rlmd_text body, struct job_messages *ret, struct rlmd_error *);
