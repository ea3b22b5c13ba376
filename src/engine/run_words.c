/*
 * The words of a run to its model, and the parts that it takes of a reply: the system prompt, its
 * turns, the forced request for an answer when it may not go on.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/money.h"
#include "engine/run_private.h"
#include "engine/validation.h"
#include "prompt/brief.h"
#include "reply/unread.h"
#include "trace/record.h"

enum {
	SENTENCE_MAX = 300, /* bytes of a sentence that may be an answer */
	FORM_MAX = 60,      /* bytes of the form of an answer that are shown */
	WRONG_MAX = 300,    /* bytes of the first thing that is wrong with one, in an error */
	LONE_CALLS = 4,     /* of one block, that make a hint worth its tokens */
	SHRINKS_MAX = 2,    /* how often a request that was too long is made smaller */
	VALUE_MAX = 256,    /* bytes of an answer that a worker looks up */
	MODULE_MAX = 64,    /* bytes of a module's name in a warning */
};

/* Characters of the last outputs, of the observations and of the listing in a forced request: what
 * is affordable. */
static const int64_t forced_sizes[] = {8000, 2000, 400};

static struct brief brief_of(const struct run *run)
{
	return (struct brief){
		.facts = scope_facts(run->scope),
		.prompts = run_words_prompts(run),
		.budget = run->budget,
		.context = &run->context,
		.task = text_from(run->task, run->task_size),
		.depth = run->depth,
		.turn = run->turn,
		.schema = run->form.schema,
	};
}

const char *run_words_model(const struct run *run)
{
	if (run->model)
		return run->model;
	return run->depth ? run->scope->subcall_model : run->scope->model;
}

const struct prompt_set *run_words_prompts(const struct run *run)
{
	return scope_prompts(run->scope, run->depth);
}

void run_words_say_system(struct run *run)
{
	struct draft system = draft_new();
	struct brief brief = brief_of(run);

	history_init(&run->history, brief.prompts, run_words_model(run),
		     llm_window(run->scope->llm, run_words_model(run)));
	brief_system(&brief, run->depth ? run->caller.parent->budget : NULL, &system);
	draft_say(&system, LLM_SYSTEM, &run->conversation);
	draft_free(&system);
}

/* Older turns that do not fit into the model's window are summed up; the user is told once. */
static void make_room(struct run *run)
{
	int64_t before = history_measure(&run->history, &run->conversation);

	if (!history_compact(&run->history, &run->conversation))
		return;
	record_compaction(run->scope->trace, run->id, run->turn - 1, (int64_t)run->history.taken,
			  before, history_measure(&run->history, &run->conversation));
	if (!run->forgot)
		caller_warn(&run->caller,
			    "The conversation outgrew the model's window, its older turns were "
			    "replaced by a summary");
	run->forgot = true;
}

static void say_last_observations(struct run *run)
{
	auto_evbuffer struct evbuffer *observations = buffer_new();
	struct draft turn = draft_new();
	struct brief brief = brief_of(run);

	history_clip(&run->history, text_in(run->last_observations), observations);
	if (run->turn == 1)
		brief_first_turn(&brief, text_in(observations), &turn);
	else
		brief_turn(&brief, text_in(observations), &turn);
	draft_say(&turn, LLM_USER, &run->conversation);
	draft_free(&turn);
	make_room(run);
}

static void say_bare_turn(struct run *run)
{
	struct draft turn = draft_new();
	struct brief brief = brief_of(run);

	brief_first_turn_bare(&brief, &turn);
	draft_say(&turn, LLM_USER, &run->conversation);
	draft_free(&turn);
	history_measure(&run->history, &run->conversation);
}

bool run_words_say_look(struct run *run, struct evbuffer *code)
{
	struct draft opening = draft_new(), look = draft_new();
	struct brief brief = brief_of(run);

	run->looked = brief_demonstration(&brief, code, &look);
	if (run->looked) {
		brief_opening(&brief, &opening);
		draft_say(&opening, LLM_USER, &run->conversation);
		draft_say(&look, LLM_ASSISTANT, &run->conversation);
		history_begin(&run->history, &run->conversation);
	}
	draft_free(&opening);
	draft_free(&look);
	return run->looked;
}

int64_t run_words_forced_size(const struct run *run)
{
	struct brief brief = brief_of(run);

	return brief_forced_size(&brief,
				 estimators_look(run->scope->estimators, run->scope->model));
}

/* So that the forced answer can be asked for with all of what is said now. */
static void expect_forced(struct run *run)
{
	run->reserve.whole = money_add(run->reserve.brief, run->history.estimate);
}

void run_words_say_turn(struct run *run)
{
	run->shrunk = 0;
	reserve_adjust(&run->reserve);
	if (run->turn == 1 && !run->looked) {
		say_bare_turn(run);
	} else {
		evbuffer_drain(run->last_observations, evbuffer_get_length(run->last_observations));
		buffer_add_buffer(run->last_observations, run->observations);
		say_last_observations(run);
	}
	expect_forced(run);
}

bool run_words_say_less(struct run *run)
{
	if ((run->turn == 1 && !run->looked) || run->shrunk++ == SHRINKS_MAX)
		return false;
	history_shrink(&run->history);
	conversation_drop_last(&run->conversation);
	say_last_observations(run);
	return true;
}

void run_words_note(struct run *run, const char *name, struct rlmd_text output)
{
	brief_note(run_words_prompts(run), name, output, run->observations);
}

void run_words_note_unknown(struct run *run, struct rlmd_text variables)
{
	if (!variables.size)
		variables = brief_text(run_words_prompts(run), "no_variables");
	brief_unknown_variable(run_words_prompts(run), run->response.value, variables,
			       run->observations);
}

void run_words_note_variables(struct run *run, struct rlmd_text listing)
{
	brief_variables(listing, run->observations);
}

void run_words_note_loss(struct run *run)
{
	if (!run->gone.kind)
		return;
	run_words_note(run, "lost", text_of(run->gone.text));
	if (run->history.count) /* not of a look that took the worker with it */
		history_add_note(&run->history, brief_text(run_words_prompts(run), "lost_turn"));
	run->gone.kind = RLMD_ERROR_NONE;
}

void run_words_note_look(struct run *run, struct rlmd_text code, const struct worker_block *block)
{
	int64_t max = run->scope->config.max_output;

	record_demonstration(run->scope->trace, run->id, code, block, max);
	brief_block(run->block_number, block, max, run->observations);
}

/* Tells the user of a module that was missing, once: a worker may say what it likes, so only of
 * what looks like a name. */
static void warn_missing(struct run *run, const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	char text[4 * MODULE_MAX];

	if (!name || !*name || name[strspn(name, letters)] || strlen(name) > MODULE_MAX)
		return;
	snprintf(text, sizeof text,
		 "The model's code wanted the module %s: preload %s gives it to it, "
		 "if its Python has it",
		 name, name);
	caller_warn_once(&run->caller, text);
}

void run_words_note_block(struct run *run, const struct worker_block *block)
{
	int64_t max = run->scope->config.max_output;

	record_block(run->scope->trace, run->id, run->turn - 1,
		     run->response.blocks[run->next_block], block, max);
	brief_block(run->block_number, block, max, run->observations);
	history_add_block(&run->history, run->block_number, run->response.blocks[run->next_block],
			  block);
	run->block_failed |= block->failed;
	warn_missing(run, block->missing);
}

void run_words_count_call(struct run *run, const struct worker_call *call)
{
	if (call->kind == WORKER_LLM_QUERY && call->count == 1)
		run->lone_calls++;
	if (call->kind != WORKER_BUDGET && !TAILQ_EMPTY(&run->subcalls))
		run->overlapped = true;
}

void run_words_note_hint(struct run *run)
{
	if (run->hinted || run->overlapped || run->lone_calls < LONE_CALLS)
		return;
	run->hinted = true;
	run_words_note(run, "serial", text_of(""));
}

static bool affords(struct run *run, int64_t output)
{
	const struct conversation *conversation = &run->conversation;
	struct token_counts counts;
	int64_t input = estimators_bound(run->scope->estimators, run_words_model(run),
					 conversation->messages, conversation->count, &counts);
	struct rlmd_amount left = budget_remaining(run->budget);
	int64_t cost;

	left.tokens = money_add(left.tokens, run->reserve.reservation.most.tokens);
	left.cost = money_add(left.cost, run->reserve.reservation.most.cost);
	if (left.tokens < input + output)
		return false;
	return !llm_price(run->scope->llm, run_words_model(run), input, output, &cost) ||
	       cost <= left.cost;
}

static void say_forced(struct run *run, int64_t max)
{
	auto_evbuffer struct evbuffer *observations = buffer_new();
	struct draft request = draft_new();
	struct brief brief = brief_of(run);

	if (max > run->scope->config.max_output)
		max = run->scope->config.max_output;
	brief_clip(text_in(run->last_observations), max, observations);
	brief_clip(text_in(run->observations), max, observations);
	brief_forced(&brief, run->reason, text_in(observations), &request);
	if (run->worded)
		draft_note(&request, run_words_prompts(run), "only_code");
	draft_say(&request, LLM_USER, &run->conversation);
	draft_free(&request);
}

static bool fits(struct run *run)
{
	int64_t tokens = history_measure(&run->history, &run->conversation);

	return tokens + SCOPE_OUTPUT_FORCED <= run->history.window &&
	       affords(run, reserve_output(run->scope, run_words_model(run), SCOPE_OUTPUT_FORCED));
}

/* The whole conversation, and a request at its end; or of its turns the latest that fit. */
static bool say_forced_at_the_end(struct run *run)
{
	say_forced(run, forced_sizes[0]);
	while (!fits(run))
		if (!history_forget(&run->history, &run->conversation))
			return false;
	return true;
}

/* Without the conversation: the task, and as much of the last outputs as the budget affords. */
static void say_forced_in_short(struct run *run, size_t size)
{
	int64_t output = reserve_output(run->scope, run_words_model(run), SCOPE_OUTPUT_FORCED / 4);
	bool enough;

	do {
		conversation_done(&run->conversation);
		conversation_add(&run->conversation, LLM_SYSTEM,
				 brief_text(run_words_prompts(run), "forced_short"),
				 (struct rlmd_text){0});
		say_forced(run, forced_sizes[size]);
		enough = affords(run, output);
	} while (!enough && ++size < sizeof forced_sizes / sizeof *forced_sizes);
}

void run_words_say_forced(struct run *run)
{
	run->shrunk = 0;
	if (!say_forced_at_the_end(run))
		say_forced_in_short(run, 0);
}

bool run_words_say_forced_short(struct run *run)
{
	if (run->shrunk++)
		return false;
	say_forced_in_short(run, 1);
	return true;
}

/* At the end of the conversation, if that is affordable; takes `request`. */
static void say_forced_again(struct run *run, struct rlmd_text reply, struct draft *request)
{
	run->shrunk = 0;
	conversation_add(&run->conversation, LLM_ASSISTANT, reply, (struct rlmd_text){0});
	draft_say(request, LLM_USER, &run->conversation);
	draft_free(request);
	if (history_measure(&run->history, &run->conversation) + SCOPE_OUTPUT_FORCED >
		    run->history.window ||
	    !affords(run, SCOPE_OUTPUT_FORCED / 4))
		say_forced_in_short(run, 0);
}

bool run_words_ask_words(struct run *run, struct rlmd_text reply)
{
	struct draft request;

	if (run->worded)
		return false;
	run->worded = true;
	request = draft_new();
	draft_note(&request, run_words_prompts(run), "only_code");
	say_forced_again(run, reply, &request);
	return true;
}

bool run_words_ask_form(struct run *run)
{
	struct draft request;

	if (run->formed)
		return false;
	run->formed = true;
	request = draft_new();
	brief_note(run_words_prompts(run), "rejected", run->verdict->wrong, request.text);
	say_forced_again(run, run->response.said, &request);
	return true;
}

/* Where the time is what is scarce, no more than comes within it: rather an answer that is cut. */
static int64_t forced_output(const struct run *run, int64_t usual)
{
	bool hurried = run->stop == RLMD_STOP_MAX_TIME || run->stop == RLMD_STOP_INTERRUPTED;
	int64_t in_time = latency_output(&run->latency, run->deadline - clock_ms());

	return hurried && in_time < usual ? in_time : usual;
}

static void on_delta(void *owner, struct rlmd_text more)
{
	hooks_tell_delta(owner, more);
}

struct ask *run_words_ask(struct run *run, enum llm_kind kind, int64_t max_tokens,
			  ask_done_fn *done)
{
	bool forced = kind == LLM_FORCED;
	int64_t most = run->history.window / SCOPE_WINDOW_PART;
	int64_t wanted = forced ? forced_output(run, max_tokens)
				: scope_output(run->scope, run_words_model(run), max_tokens);
	struct ask_options options = {
		.caller = &run->caller,
		.number = forced ? run->caller.calls++ : CALLER_TURN,
		.request = {.model = run_words_model(run),
			    .messages = run->conversation.messages,
			    .message_count = run->conversation.count,
			    .max_tokens = wanted < most ? wanted : most,
			    .deadline = run->deadline,
			    .kind = kind,
			    .depth = run->depth,
			    .turn = run->turn ? run->turn - 1 : 0,
			    .decides = !run->caller.parent,
			    .schema = forced ? run->form.schema : (struct rlmd_text){0}},
	};

	if (!run->depth && run->scope->hooks.of.delta) {
		options.request.on_delta = on_delta;
		options.request.delta_owner = &run->scope->hooks;
	}
	if (kind == LLM_TURN && llm_knows_positions(run->scope->llm))
		exchange_id(&options.request, run->asked);
	return ask_start(run->scope, &options, done, run);
}

/* --- replies --------------------------------------------------------------------------- */

void run_words_read(struct run *run)
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

void run_words_read_turn(struct run *run)
{
	const struct llm_response *reply = run->reply;
	struct rlmd_text said;

	if (!reply->usage.estimated && reply->billed == 1)
		history_learn(&run->history, reply->usage.input);
	run_words_read(run);
	record_response(run->scope->trace, run->id, run->turn - 1,
			reply->asked.size
				? reply->asked
				: run->conversation.messages[run->conversation.count - 1].text,
			reply, run->response.thinking);
	said = run->response.said;
	run->repeated = same_as_before(&run->conversation, said);
	/* Providers refuse an empty message; what follows tells the model what it lacked. */
	conversation_add(&run->conversation, LLM_ASSISTANT,
			 said.size ? said : brief_text(run_words_prompts(run), "nothing"),
			 (struct rlmd_text){0});
	history_add_turn(&run->history);
}

/* Neither code nor an answer, nor the beginning of one. */
static void note_unread(struct run *run)
{
	static const char *const notes[] = {
		[UNREAD_WORDS] = "no_code",
		[UNREAD_LANGUAGE] = "other_language",
		[UNREAD_TOOL] = "other_tool",
		[UNREAD_LINES] = "no_block",
	};
	struct rlmd_text name, sentence = unread_sentence(run->response.said);
	enum unread unread = unread_find(run->response.said, &name);

	if (unread == UNREAD_WORDS && run->idle_turns && sentence.size &&
	    sentence.size <= SENTENCE_MAX)
		run_words_note(run, "only_words", sentence);
	else
		run_words_note(run, notes[unread], text_clip(name, FORM_MAX));
}

void run_words_note_reply(struct run *run)
{
	const struct response *response = &run->response;
	const struct rlmd_text none = text_of("");

	if (response->cut_fence)
		run_words_note(run, "cut", none);
	if (response->block_count && run->repeated)
		run_words_note(run, "repeated", none);
	if (text_starts(response->form, "FINAL_VAR("))
		run_words_note(run, "expression", text_clip(response->form, FORM_MAX));
	else if (response->form.size)
		run_words_note(run, "form", text_clip(response->form, FORM_MAX));
	else if (response->thought_open && !run->cut)
		run_words_note(run, "thought", none);
	else if (!response->block_count && !response->cut_fence)
		run->cut ? run_words_note(run, "cut_text", none) : note_unread(run);
}

bool run_words_may_mean_value(const struct run *run)
{
	return run->response.may_compute && run->block_number > 0 &&
	       run->response.value.size <= VALUE_MAX;
}

void run_words_warn_unconfirmed(struct run *run)
{
	caller_warn(
		&run->caller,
		run->guess_computes
			? "The answer may be an expression, and was not confirmed"
			: "The answer stood beside code that had not run, and was not confirmed");
}

const struct rlmd_error *run_words_wordless(const struct run *run)
{
	static const struct rlmd_error code = {.text = "it was only code"};
	static const struct rlmd_error nothing = {.text = "it held no answer"};

	return run->response.only_code ? &code : &nothing;
}

bool run_words_json(const struct run *run, struct rlmd_text *ret)
{
	const struct response *response = &run->response;

	if (!answer_check_wanted(&run->form) || response->block_count || response->cut_fence ||
	    run->cut)
		return false;
	*ret = validation_json(response->said);
	return text_starts(*ret, "{") || text_starts(*ret, "[");
}

void run_words_give_answer(struct run *run, struct rlmd_text text, enum answer_source source)
{
	auto_evbuffer struct evbuffer *clean = buffer_new();

	text_repair(text, clean);
	free(run->answer);
	run->answer = text_drain(clean, &run->answer_size);
	run->source = source;
}

void run_words_reject(struct run *run)
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
	run_words_note(run, "rejected", wrong);
}

void run_words_accept(struct run *run)
{
	run->error.kind = RLMD_ERROR_NONE;
	if (run->source == ANSWER_FORCED) {
		caller_warn(&run->caller, error_stop_warning(run->stop));
		if (run->stop != RLMD_STOP_INTERRUPTED)
			caller_warn(&run->caller, run->reason);
		return;
	}
	if (run->block_failed)
		caller_warn(&run->caller, "The answer stood beside a code block that failed");
	run->stop = RLMD_STOP_FINAL;
}

struct rlmd_error run_words_explain_forced(const struct run *run, const struct rlmd_error *cause)
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
