/*
 * cli/serve_model.h - whom jobs ask: the client itself, by `model.request`, or a provider at an
 * address of their own.
 */
#pragma once

#include "cli/serving.h"

#define SERVE_MODEL_NAME "client" /* of the provider, and of its model if the options name none */

/* The name of a client's job, lent; NULL: it is none of the client's. */
typedef const char *serve_model_name_fn(const struct serve_client *, const struct rlmd_job *);

/* Adds the provider to the engine, once. */
bool serve_model_open(struct serve *, serve_model_name_fn *, struct rlmd_error *);

/* The registered name of the provider that a job's settings are about, lent; NULL: the server has
 * none, and cannot make one. */
const char *serve_model_provider(struct serve *, const struct config *, struct rlmd_error *);

void serve_model_free(struct serve_model *); /* the engine is gone; NULL is fine */
