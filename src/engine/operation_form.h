/*
 * engine/operation_form.h - a call whose answer has to satisfy a schema.
 *
 * A call is one question and its answer. Where that has not the form that was asked for,
 * the question is asked once more with what was said before and what is wrong with it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "engine/answer_check.h"
#include "llm/llm.h"

struct prompt_set;
struct rlmd_job;

enum { OPERATION_TRIES = 3 }; /* requests of one operation, for an answer of the right form */

struct operation_form {
	struct rlmd_text schema; /* lent */
	enum llm_kind kind;
	char *system;                                /* owned: with the schema */
	struct rlmd_text turns[2 * OPERATION_TRIES]; /* the user's and the model's; the first lent,
							the others owned */
	size_t turn_count;
	struct answer_check *check; /* owned; NULL: none is under way */
	bool cut;                   /* the last answer, by its length limit */
	int64_t duration_ms;        /* of it; -1: it came out of a cache */
};

/* `user`, and the schema, are lent as long as it lives. */
struct operation_form *operation_form_new(const struct prompt_set *, enum llm_kind,
					  struct rlmd_text schema, struct rlmd_text system,
					  struct rlmd_text user);
void operation_form_free(struct operation_form *); /* NULL is fine; cancels the check */

/* Keeps an answer, and asks whether it will do; never calls back before it returns. */
void operation_form_check(struct operation_form *, struct rlmd_job *, const struct llm_response *,
			  answer_verdict_fn *, void *owner);

/* To be called first thing when that is heard of. */
void operation_form_heard(struct operation_form *);

/* It will not: adds what is wrong to what was said. False: that was the last try. */
bool operation_form_reject(struct operation_form *, const struct prompt_set *,
			   struct rlmd_text wrong);
