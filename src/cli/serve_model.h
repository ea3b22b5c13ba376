/*
 * cli/serve_model.h - whom jobs ask: the client itself, by `model.request`, or a provider at an
 * address of their own.
 */
#pragma once

#include <rlmd/job.h>

#include "cli/serve_params.h"
#include "cli/serving.h"

#define SERVE_MODEL_NAME "client" /* of the provider, and of its model if the options name none */

/* Sets the provider of a job or session: by the parameter `model`, or by its options. */
bool serve_model_take(struct serve_params *, const json_t *model, struct rlmd_error *);

/* Its provider, and the turns it takes. Of a tenant's client also its key, models, walls and
 * accounts, but where the client itself answers. */
bool serve_model_give(const struct serve_params *, struct rlmd_job_options *, struct rlmd_error *);

/* As in model.request: "turn", "subcall", "forced", "operation". Static. */
const char *serve_model_kind_name(enum rlmd_model_kind);

void serve_model_free(struct serve_model *); /* the engine is gone; NULL is fine */
