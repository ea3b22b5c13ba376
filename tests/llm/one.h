/*
 * tests/llm/one.h - one provider in a registry of its own, and a job that asks it.
 */
#pragma once

#include "llm/llm.h"
#include "llm/provider.h"

struct one {
	struct registry *registry;
	struct llm *llm;
};

/* The job's settings may be NULL: a usual one. False with the error of whatever refused; nothing is
 * left then. */
bool one_open(struct one *, struct event_base *, const struct rlmd_provider_options *,
	      const struct llm_config *, struct rlmd_error *);
void one_close(struct one *);
