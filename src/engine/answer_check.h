/*
 * engine/answer_check.h - whether an answer will do, asked before it is taken.
 *
 * The caller may want an answer to have a form: a JSON Schema (engine/validation.h), the hook
 * `check` of a host, or first the one and then the other. The model is told of each fault, and
 * tries again.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

struct answer_check;
struct scope;

/* Lent to the callback. */
struct answer_verdict {
	const struct rlmd_error *error; /* it could not be checked, and never will; NULL: it was */
	struct rlmd_text
		wrong; /* what is, for the model, a line each; ends in NUL; empty: nothing */
	struct rlmd_text answer; /* where nothing is: what is to be taken for it */
};

typedef void answer_verdict_fn(void *owner, const struct answer_verdict *);

/* The form that an answer has to have; zero asks for none. */
struct answer_form {
	struct rlmd_text schema; /* lent while it is held to it: the job has looked at it before */
	bool hook;
};

bool answer_check_wanted(const struct answer_form *);

/* Copies the answer. Never calls back before it returns. */
struct answer_check *answer_check_start(struct scope *, const struct answer_form *,
					struct rlmd_text answer, answer_verdict_fn *, void *owner);
void answer_check_cancel(struct answer_check *); /* no callback follows; NULL is fine */
