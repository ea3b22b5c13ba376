/*
 * llm/recall.h - what a job knows of a cache: whose exchanges it has there, and how often it asked.
 *
 * Answers are the whole ones: what failed, was refused, cut or empty is asked for again.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "llm/cache.h"
#include "llm/llm.h"

/* Of a job; embed it. Zero: there is no cache. */
struct recalls {
	struct cache *cache; /* lent by the registry; NULL: off */
	int64_t age_ms;
	char *tenant; /* owned, or NULL */
	json_t *seen; /* owned: who asked, and what -> how often */
};

/* The cache of the job's settings, where it has one; errors as of cache_new(). */
bool recalls_open(struct recalls *, struct registry *, const struct llm_config *,
		  struct rlmd_error *);
void recalls_done(struct recalls *); /* of a zeroed one too */

/* llm_recall(); the request's model is the provider's own name. */
struct llm_recall *recall_new(struct recalls *, const struct rlmd_provider *,
			      const struct llm_request *, const char *asker);

/* llm_forget() */
void recalls_forget(struct recalls *, const char *asker);

/* What was had before, where llm_recalled(); lent, at no cost. */
struct llm_response recall_response(const struct llm_recall *);

/* Keeps an answer, if it is one that may be asked for again; RLMD_ERROR_INPUT. */
bool recall_keep(const struct llm_recall *, const struct llm_response *, struct rlmd_error *);
