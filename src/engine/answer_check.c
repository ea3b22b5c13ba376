/*
 * A check begins from the loop and is told from the loop, whenever the host answers. Whom the host
 * has not answered when nobody waits any more stays as a stub that takes the verdict and is gone.
 */
#include "engine/answer_check.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/timer.h"
#include "engine/scope.h"
#include "engine/validation.h"

/* The answer of the host's hook. */
struct rlmd_check {
	struct answer_check *waits; /* lent; NULL: nobody does */
};

struct answer_check {
	struct scope *scope; /* lent */
	struct answer_form form;
	struct timer *due;                /* owned: the beginning, then the verdict */
	struct validation_check *against; /* owned: the schema; NULL: that is not under way */
	struct rlmd_check *check;         /* the host's, until it has answered; or NULL */
	char *answer;                     /* owned */
	size_t answer_size;
	char *wrong; /* owned; NULL: nothing is */
	size_t wrong_size;
	bool begun;
	answer_verdict_fn *tell;
	void *owner; /* lent */
};

bool answer_check_wanted(const struct answer_form *form)
{
	return form->schema.size || form->hook;
}

void answer_check_cancel(struct answer_check *check)
{
	if (!check)
		return;
	if (check->check)
		check->check->waits = NULL;
	validation_cancel(check->against);
	timer_free(check->due);
	free(check->answer);
	free(check->wrong);
	free(check);
}

/* C3: it is gone when it is heard of. */
static void tell(struct answer_check *check, const struct rlmd_error *err)
{
	auto_free char *answer = take_pointer(&check->answer);
	auto_free char *wrong = take_pointer(&check->wrong);
	const struct answer_verdict verdict = {
		.error = err,
		.wrong = text_from(wrong, check->wrong_size),
		.answer = text_from(answer, check->answer_size),
	};
	answer_verdict_fn *heard = check->tell;
	void *owner = check->owner;

	answer_check_cancel(check);
	heard(owner, &verdict);
}

static void reject(struct answer_check *check, struct rlmd_text wrong)
{
	check->wrong = text_copy(wrong);
	check->wrong_size = wrong.size;
}

static void ask_host(struct answer_check *check)
{
	check->check = xcalloc(1, sizeof *check->check);
	check->check->waits = check;
	hooks_tell_check(&check->scope->hooks, text_from(check->answer, check->answer_size),
			 check->check);
}

static void on_validated(void *owner, const struct validation_result *result)
{
	struct answer_check *check = owner;
	struct rlmd_error err;

	check->against = NULL;
	if (result->error) {
		err = *result->error;
		error_context(&err, "the answer");
		tell(check, &err);
		return;
	}
	if (!result->wrong.size && check->form.hook) {
		ask_host(check);
		return;
	}
	if (result->wrong.size)
		reject(check, result->wrong);
	tell(check, NULL);
}

/* Words around the JSON are dropped here. */
static void hold_to_schema(struct answer_check *check)
{
	struct rlmd_text json = validation_json(text_from(check->answer, check->answer_size));
	char *answer = text_copy(json);

	free(check->answer);
	check->answer = answer;
	check->answer_size = json.size;
	check->against = validation_check_answer(check->scope->validation, check->form.schema,
						 text_from(answer, json.size), on_validated, check);
}

static void on_due(void *owner)
{
	struct answer_check *check = owner;

	if (check->begun) {
		tell(check, NULL);
		return;
	}
	check->begun = true;
	if (check->form.schema.size)
		hold_to_schema(check);
	else
		ask_host(check);
}

/* The host has answered, which it may do once; NULL: nobody waits for it any more. */
static struct answer_check *take_back(struct rlmd_check *check)
{
	struct answer_check *waits = check ? check->waits : NULL;

	free(check);
	if (waits) {
		waits->check = NULL;
		timer_post(waits->due);
	}
	return waits;
}

void rlmd_check_accept(struct rlmd_check *check)
{
	take_back(check);
}

void rlmd_check_reject(struct rlmd_check *check, const char *wrong)
{
	struct answer_check *waits = take_back(check);

	if (!waits)
		return;
	reject(waits, text_of(wrong && *wrong ? wrong : "It is not what was asked for."));
}

struct answer_check *answer_check_start(struct scope *scope, const struct answer_form *form,
					struct rlmd_text answer, answer_verdict_fn *heard,
					void *owner)
{
	struct answer_check *check = xcalloc(1, sizeof *check);

	check->scope = scope;
	check->form = *form;
	check->answer = text_copy(answer);
	check->answer_size = answer.size;
	check->tell = heard;
	check->owner = owner;
	check->due = timer_new(scope->base, on_due, check);
	timer_post(check->due);
	return check;
}
