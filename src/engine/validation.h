/*
 * engine/validation.h - whether JSON satisfies a JSON Schema, asked of a sealed helper.
 *
 * Schema and answer are both foreign, and a validator does what they bring it to do: a
 * pattern that takes for ever, references that go round in a circle. So each answer
 * gets a worker of its own, which has no key, no file and no network, and ends with it
 * or at its limits of time and memory; worker/validation.py is what runs in there. A
 * job has one such worker at a time, the other checks wait.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

enum {
	SCHEMA_MAX = 64 << 10,         /* bytes: models are told all of it */
	VALIDATION_MS_MAX = 10000,     /* of one check; less where blocks have less */
	VALIDATION_MEMORY = 256 << 20, /* bytes of such a worker */
};

struct event_base;
struct rlmd_sandbox;
struct validation;
struct validation_check;

/* Sandbox and log are lent. */
struct validation *validation_new(struct event_base *, struct rlmd_sandbox *, const struct log *,
				  int64_t timeout_ms);
void validation_free(struct validation *); /* cancels all checks; NULL is fine */

/* Lent to the callback. */
struct validation_result {
	const struct rlmd_error *error; /* RLMD_ERROR_SCHEMA: it could not be told; NULL: it was */
	struct rlmd_text wrong; /* a line for each violation, ends in NUL; empty: there is none */
	size_t index;           /* of the schema that is meant */
};

typedef void validation_fn(void *owner, const struct validation_result *);

/* Neither calls back before it returns, and both copy what they are given. Of schemas, whether they
 * are some: the first that is none. */
struct validation_check *validation_check_schemas(struct validation *, const struct rlmd_text *,
						  size_t count, validation_fn *, void *owner);
struct validation_check *validation_check_answer(struct validation *, struct rlmd_text schema,
						 struct rlmd_text answer, validation_fn *,
						 void *owner);
void validation_cancel(struct validation_check *); /* no callback follows; NULL is fine */

/* The JSON of an answer: what stands in its one fence, or all of it, trimmed; lent from it. */
struct rlmd_text validation_json(struct rlmd_text answer);
