/*
 * What a run says to its model: the system prompt, its turns, and the forced
 * request for an answer when it may not go on.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/money.h"
#include "engine/request.h"
#include "engine/run_private.h"
#include "prompt/brief.h"
#include "trace/record.h"

enum {
	LONE_CALLS = 4,  /* of one block, that make a hint worth its tokens */
	SHRINKS_MAX = 2, /* how often a request that was too long is made smaller */
};

/* Characters of the last outputs, of the observations and of the listing in a forced request: what
 * is affordable. */
static const int64_t forced_sizes[] = {8000, 2000, 400};

static struct brief brief_of(const struct run *run)
{
	return (struct brief){
		.facts = job_facts(run->job),
		.prompts = run_prompts(run),
		.budget = run->budget,
		.context = &run->context,
		.task = text_from(run->task, run->task_size),
		.depth = run->depth,
		.turn = run->turn,
		.schema = run->form.schema,
	};
}

const char *run_model(const struct run *run)
{
	if (run->model)
		return run->model;
	return run->depth ? run->job->subcall_model : run->job->model;
}

const struct prompt_set *run_prompts(const struct run *run)
{
	return job_prompts(run->job, run->depth);
}

void run_say_system(struct run *run)
{
	struct draft system = draft_new();
	struct brief brief = brief_of(run);

	history_init(&run->history, brief.prompts, llm_window(run->job->llm, run_model(run)));
	run->conversation.systems = &run->job->estimators->run_systems;
	brief_system(&brief, run->depth ? run->caller.parent->budget : NULL, &system);
	draft_say(&system, LLM_SYSTEM, &run->conversation);
	draft_free(&system);
}

/* What no longer fits into the model's window is summed up, which the user is told once. */
static void make_room(struct run *run)
{
	int64_t before = history_measure(&run->history, &run->conversation);

	if (!history_compact(&run->history, &run->conversation))
		return;
	record_compaction(run->job->trace, run->id, run->turn - 1, (int64_t)run->history.taken,
			  before, history_measure(&run->history, &run->conversation));
	if (!run->forgot)
		run_warn(run, "The conversation outgrew the model's window, its older turns were "
			      "replaced by a summary");
	run->forgot = true;
}

static void say_last_observations(struct run *run)
{
	auto_evbuffer struct evbuffer *observations = evbuffer_new();
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

bool run_say_look(struct run *run, struct evbuffer *code)
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

int64_t run_forced_size(const struct run *run)
{
	struct brief brief = brief_of(run);

	return brief_forced_size(&brief, estimators_look(run->job->estimators, run->job->model));
}

/* So that the forced answer can be asked for with all of what is said now. */
static void expect_forced(struct run *run)
{
	run->reserve.whole = money_add(run->reserve.brief, run->history.estimate);
}

void run_say_turn(struct run *run)
{
	run->shrunk = 0;
	reserve_adjust(&run->reserve);
	if (run->turn == 1 && !run->looked) {
		say_bare_turn(run);
	} else {
		evbuffer_drain(run->last_observations, evbuffer_get_length(run->last_observations));
		evbuffer_add_buffer(run->last_observations, run->observations);
		say_last_observations(run);
	}
	expect_forced(run);
}

bool run_say_less(struct run *run)
{
	if ((run->turn == 1 && !run->looked) || run->shrunk++ == SHRINKS_MAX)
		return false;
	history_shrink(&run->history);
	conversation_drop_last(&run->conversation);
	say_last_observations(run);
	return true;
}

void run_note(struct run *run, const char *name, struct rlmd_text output)
{
	brief_note(run_prompts(run), name, output, run->observations);
}

void run_note_unknown(struct run *run, struct rlmd_text variables)
{
	if (!variables.size)
		variables = text_of("none but the inputs");
	brief_unknown_variable(run_prompts(run), run->response.value, variables, run->observations);
}

void run_tell_variables(struct run *run, struct rlmd_text listing)
{
	evbuffer_add_printf(run->observations, "\n[variables]\n");
	evbuffer_add(run->observations, listing.bytes, listing.size);
}

void run_tell_loss(struct run *run)
{
	if (!run->gone.kind)
		return;
	run_note(run, "lost", text_of(run->gone.text));
	if (run->history.count) /* not of a look that took the worker with it */
		history_add_note(&run->history,
				 "the session was lost, and the variables made before");
	run->gone.kind = RLMD_ERROR_NONE;
}

void run_tell_look(struct run *run, struct rlmd_text code, const struct worker_block *block)
{
	int64_t max = run->job->config.max_output;

	record_demonstration(run->job->trace, run->id, code, block, max);
	brief_block(run->block_number, block, max, run->observations);
}

void run_tell_block(struct run *run, const struct worker_block *block)
{
	int64_t max = run->job->config.max_output;

	record_block(run->job->trace, run->id, run->turn - 1, run->response.blocks[run->next_block],
		     block, max);
	brief_block(run->block_number, block, max, run->observations);
	history_add_block(&run->history, run->block_number, run->response.blocks[run->next_block],
			  block);
	run->block_failed |= block->failed;
}

void run_tell_hint(struct run *run)
{
	if (run->hinted || run->overlapped || run->lone_calls < LONE_CALLS)
		return;
	run->hinted = true;
	run_note(run, "serial", text_of(""));
}

static bool affords(struct run *run, int64_t output)
{
	const struct conversation *conversation = &run->conversation;
	struct token_counts counts;
	int64_t input = estimators_bound(run->job->estimators, run_model(run),
					 conversation->messages, conversation->count, &counts);
	struct rlmd_amount left = budget_remaining(run->budget);
	int64_t cost;

	left.tokens = money_add(left.tokens, run->reserve.charge.amount.tokens);
	left.cost = money_add(left.cost, run->reserve.charge.amount.cost);
	if (left.tokens < input + output)
		return false;
	return !llm_price(run->job->llm, run_model(run), input, output, &cost) || cost <= left.cost;
}

static void say_forced(struct run *run, int64_t max)
{
	auto_evbuffer struct evbuffer *observations = evbuffer_new();
	struct draft request = draft_new();
	struct brief brief = brief_of(run);

	if (max > run->job->config.max_output)
		max = run->job->config.max_output;
	brief_clip(text_in(run->last_observations), max, observations);
	brief_clip(text_in(run->observations), max, observations);
	brief_forced(&brief, run->reason, text_in(observations), &request);
	if (run->worded)
		draft_note(&request, run_prompts(run), "only_code");
	draft_say(&request, LLM_USER, &run->conversation);
	draft_free(&request);
}

static bool fits(struct run *run)
{
	int64_t tokens = history_measure(&run->history, &run->conversation);

	return tokens + ASK_TOKENS_FORCED <= run->history.window &&
	       affords(run, reserve_output(run->job, run_model(run), ASK_TOKENS_FORCED));
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

/* Without the conversation: the task, and as much of the last outputs as the purse affords. */
static void say_forced_in_short(struct run *run, size_t size)
{
	int64_t output = reserve_output(run->job, run_model(run), ASK_TOKENS_FORCED / 4);
	bool enough;

	do {
		conversation_done(&run->conversation);
		conversation_add(
			&run->conversation, LLM_SYSTEM,
			text_of("Answer from the work done so far. Be brief and complete."),
			(struct rlmd_text){0});
		say_forced(run, forced_sizes[size]);
		enough = affords(run, output);
	} while (!enough && ++size < sizeof forced_sizes / sizeof *forced_sizes);
}

void run_say_forced(struct run *run)
{
	run->shrunk = 0;
	if (!say_forced_at_the_end(run))
		say_forced_in_short(run, 0);
}

bool run_say_forced_short(struct run *run)
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
	if (history_measure(&run->history, &run->conversation) + ASK_TOKENS_FORCED >
		    run->history.window ||
	    !affords(run, ASK_TOKENS_FORCED / 4))
		say_forced_in_short(run, 0);
}

bool run_say_forced_for_words(struct run *run, struct rlmd_text reply)
{
	struct draft request;

	if (run->worded)
		return false;
	run->worded = true;
	request = draft_new();
	draft_note(&request, run_prompts(run), "only_code");
	say_forced_again(run, reply, &request);
	return true;
}

bool run_say_forced_for_form(struct run *run)
{
	struct draft request;

	if (run->formed)
		return false;
	run->formed = true;
	request = draft_new();
	brief_note(run_prompts(run), "rejected", run->verdict->wrong, request.text);
	say_forced_again(run, run->response.said, &request);
	return true;
}

/* Where the time is what is scarce, no more than comes within it: rather an answer that is cut. */
static int64_t forced_output(const struct run *run, int64_t usual)
{
	bool hurried = run->stop == RLMD_STOP_MAX_TIME || run->stop == RLMD_STOP_INTERRUPTED;
	int64_t in_time = pace_output(&run->pace, run->deadline - clock_ms());

	return hurried && in_time < usual ? in_time : usual;
}

static void on_delta(void *owner, struct rlmd_text more)
{
	job_tell_delta(owner, more);
}

void run_ask_model(struct run *run, enum llm_kind kind, int64_t max_tokens)
{
	bool forced = kind == LLM_FORCED;
	int64_t most = run->history.window / REQUEST_WINDOW_PART;
	int64_t wanted = forced ? forced_output(run, max_tokens)
				: request_output(run->job->llm, &run->job->config, run_model(run),
						 max_tokens);
	struct ask_options options = {
		.caller = &run->caller,
		.number = forced ? run->caller.calls++ : ASK_TURN,
		.request = {.model = run_model(run),
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

	if (!run->depth && run->job->hooks.of.delta) {
		options.request.on_delta = on_delta;
		options.request.delta_owner = run->job;
	}
	if (kind == LLM_TURN && llm_knows_places(run->job->llm))
		exchange_id(&options.request, run->asked);
	run_yield(run);
	run->ask = ask_start(run->job, &options, run_on_ask, run);
}
