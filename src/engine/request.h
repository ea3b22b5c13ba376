/*
 * engine/request.h - what the settings say of every request to a model.
 */
#pragma once

#include <jansson.h>

#include "engine/job.h"
#include "llm/llm.h"
#include "prompt/prompt_set.h"

/* This part of the model's window, at most, is asked for as a reply. */
enum { REQUEST_WINDOW_PART = 4 };

/*
 * How much output is asked for where the settings do not say: `usual`; else what they say, of a
 * `usual` call and of a turn at most a quarter of the model's window, if that is more.
 */
int64_t request_output(const struct llm *, const struct job_config *, const char *model,
		       int64_t usual);

/* Which prompts a model is told: those of the settings, or what suits it. Lent. */
const struct prompt_set *request_prompts(const struct llm *, const struct job_config *,
					 const char *model);

/* For --dry-run, as members of `object`: what one reply to `model` may have, the sampling, and
 * which prompts it is told. */
void request_tell(const struct llm *, const struct job_config *, const char *model, int64_t usual,
		  json_t *object);

/* Their limit on a reply, and their sampling as far as the request brings none of its own. */
void request_use_settings(struct llm_request *, const struct job_config *);
