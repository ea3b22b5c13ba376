/*
 * What a run takes from a reply of its model: what was said is kept in the conversation, and what
 * of it could not be used is told.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/stop.h"
#include "engine/run_private.h"
#include "engine/validation.h"
#include "trace/record.h"

enum {
	FORM_MAX = 60,   /* bytes of the form of an answer that are shown */
	WRONG_MAX = 300, /* bytes of the first thing that is wrong with one, in an error */
};

void run_take_reply(struct run *run)
{
	bool cut = run->reply->finish == LLM_FINISH_LENGTH;

	response_done(&run->response);
	response_read(run->reply->text, cut, &run->response);
	run->cut = cut && !run->response.invented;
}

static bool same_as_before(const struct conversation *conversation, struct rlmd_text text)
{
	const struct llm_message *before = &conversation->messages[conversation->count - 2];

	return before->role == LLM_ASSISTANT && before->text.size == text.size &&
	       !memcmp(before->text.bytes, text.bytes, text.size);
}

void run_take_turn(struct run *run)
{
	const struct llm_response *reply = run->reply;
	struct rlmd_text said;

	if (!reply->usage.estimated && reply->billed == 1)
		history_learn(&run->history, reply->usage.input);
	run_take_reply(run);
	record_response(run->job->trace, run->id, run->turn - 1,
			reply->asked.size
				? reply->asked
				: run->conversation.messages[run->conversation.count - 1].text,
			reply, run->response.thinking);
	said = run->response.said;
	run->repeated = same_as_before(&run->conversation, said);
	/* Providers refuse an empty message; what follows tells the model what it lacked. */
	conversation_add(&run->conversation, LLM_ASSISTANT, said.size ? said : text_of("(nothing)"),
			 (struct rlmd_text){0});
	history_add_turn(&run->history);
}

void run_tell_reply(struct run *run)
{
	const struct response *response = &run->response;
	const struct rlmd_text none = text_of("");

	if (response->cut_fence)
		run_note(run, "cut", none);
	if (response->block_count && run->repeated)
		run_note(run, "repeated", none);
	if (text_starts(response->form, "FINAL_VAR("))
		run_note(run, "expression", text_clip(response->form, FORM_MAX));
	else if (response->form.size)
		run_note(run, "form", text_clip(response->form, FORM_MAX));
	else if (response->thought_open && !run->cut)
		run_note(run, "thought", none);
	else if (!response->block_count && !response->cut_fence)
		run_note(run, run->cut ? "cut_text" : "no_code", none);
}

bool run_reply_json(const struct run *run, struct rlmd_text *ret)
{
	const struct response *response = &run->response;

	if (!answer_form_given(&run->form) || response->block_count || response->cut_fence ||
	    run->cut)
		return false;
	*ret = validation_json(response->said);
	return text_starts(*ret, "{") || text_starts(*ret, "[");
}

void run_give_answer(struct run *run, struct rlmd_text text, enum answer_source source)
{
	auto_evbuffer struct evbuffer *clean = evbuffer_new();

	text_repair(text, clean);
	free(run->answer);
	run->answer = text_drain(clean, &run->answer_size);
	run->source = source;
}

static void on_verdict(void *owner, const struct answer_verdict *verdict)
{
	struct run *run = owner;

	run->check = NULL;
	run->verdict = verdict;
	run_drive(run, WAKE_CHECK);
}

bool run_ask_check(struct run *run)
{
	struct rlmd_text answer = text_from(run->answer, run->answer_size);

	if (!answer_form_given(&run->form))
		return false;
	run_yield(run);
	run->check = answer_check_start(run->job, &run->form, answer, on_verdict, run);
	return true;
}

void run_reject(struct run *run)
{
	struct rlmd_text wrong = run->verdict->wrong;

	free(take_pointer(&run->guess));
	free(take_pointer(&run->answer));
	run->answer_size = 0;
	run->source = ANSWER_MISSING;
	if (!wrong.size)
		return;
	free(run->wrong);
	run->wrong = text_copy(
		text_clip(text_from(wrong.bytes, strcspn(wrong.bytes, "\n")), WRONG_MAX));
	run_note(run, "rejected", wrong);
}

void run_take_answer(struct run *run)
{
	run->error.kind = RLMD_ERROR_NONE;
	if (run->source == ANSWER_FORCED) {
		run_warn(run, stop_warning(run->stop));
		if (run->stop != RLMD_STOP_INTERRUPTED)
			run_warn(run, run->reason);
		return;
	}
	if (run->block_failed)
		run_warn(run, "The answer stood beside a code block that failed");
	run->stop = RLMD_STOP_FINAL;
}

struct rlmd_error run_explain_forced(const struct run *run, const struct rlmd_error *cause)
{
	struct rlmd_error err = *cause;

	if (run->wrong && run->stop != RLMD_STOP_INTERRUPTED) {
		error_set(&err, RLMD_ERROR_SCHEMA, "%s, and no answer was accepted: %s",
			  run->reason, run->wrong);
		err.stop = RLMD_STOP_SCHEMA;
		return err;
	}
	error_context(&err, "%s, and no answer could be forced", run->reason);
	err.kind = error_of_stop(run->stop);
	err.stop = run->stop;
	return err;
}
