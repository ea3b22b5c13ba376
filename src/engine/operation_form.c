#include "engine/operation_form.h"

#include <event2/buffer.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "engine/job.h"
#include "prompt/brief.h"

struct operation_form *operation_form_new(const struct prompt_set *prompts, enum llm_kind kind,
					  struct rlmd_text schema, struct rlmd_text system,
					  struct rlmd_text user)
{
	struct operation_form *form = xcalloc(1, sizeof *form);
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	form->schema = schema;
	form->kind = kind;
	evbuffer_add(out, system.bytes, system.size);
	evbuffer_add(out, "\n", 1);
	brief_schema(prompts, schema, out);
	form->system = text_drain(out, NULL);
	form->turns[form->turn_count++] = user;
	return form;
}

void operation_form_free(struct operation_form *form)
{
	if (!form)
		return;
	answer_check_cancel(form->check);
	for (size_t i = 1; i < form->turn_count; i++)
		free((char *)form->turns[i].bytes);
	free(form->system);
	free(form);
}

static void add(struct operation_form *form, struct rlmd_text text)
{
	form->turns[form->turn_count++] = text_from(text_copy(text), text.size);
}

void operation_form_check(struct operation_form *form, struct rlmd_job *job,
			  const struct llm_response *response, answer_verdict_fn *heard,
			  void *owner)
{
	const struct answer_form wanted = {.schema = form->schema};

	add(form, response->text);
	form->cut = response->finish == LLM_FINISH_LENGTH;
	form->duration_ms = response->cached || response->journaled ? -1 : response->duration_ms;
	form->check = answer_check_start(job, &wanted, response->text, heard, owner);
}

void operation_form_heard(struct operation_form *form)
{
	form->check = NULL;
}

bool operation_form_reject(struct operation_form *form, const struct prompt_set *prompts,
			   struct rlmd_text wrong)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	if (form->turn_count == 2 * OPERATION_TRIES)
		return false;
	brief_note(prompts, "rejected", wrong, out);
	add(form, text_in(out));
	return true;
}
