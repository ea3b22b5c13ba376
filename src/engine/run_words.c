/*
 * What a run says to its model: the system prompt, its turns, and the plea for
 * an answer when it may not go on.
 */
#include "base/cleanup.h"
#include "base/money.h"
#include "engine/brief.h"
#include "engine/run_private.h"

enum { PLEA_TEXT_MAX = 8000 }; /* characters of the last outputs, of the news, of the listing */

static struct brief brief_of(const struct run *run)
{
	return (struct brief){
		.room = run->room,
		.budget = run->budget,
		.context = &run->context,
		.task = text_from(run->task, run->task_size),
		.depth = run->depth,
		.turn = run->turn,
	};
}

void run_say_system(struct run *run)
{
	struct telling system = telling_new();
	struct brief brief = brief_of(run);

	brief_system(&brief, run->parent_budget, &system);
	telling_say(&system, LLM_SYSTEM, &run->conversation);
	telling_free(&system);
}

void run_say_turn(struct run *run)
{
	struct telling turn = telling_new();
	struct brief brief = brief_of(run);

	if (run->turn == 1) {
		brief_first_turn(&brief, &turn);
	} else {
		brief_turn(&brief, text_in(run->news), &turn);
		evbuffer_drain(run->last_news, evbuffer_get_length(run->last_news));
		evbuffer_add_buffer(run->last_news, run->news);
	}
	telling_say(&turn, LLM_USER, &run->conversation);
	telling_free(&turn);
}

static const char *model_of(const struct run *run)
{
	return run->depth ? run->room->subcall_model : run->room->model;
}

static bool affords(struct run *run, const struct conversation *conversation)
{
	int64_t input = ask_input_bound(conversation->messages, conversation->count);
	struct budget_amount left = budget_remaining(run->budget);
	int64_t cost;

	left.tokens = money_add(left.tokens, run->reserve.amount.tokens);
	left.cost = money_add(left.cost, run->reserve.amount.cost);
	if (left.tokens < input + ASK_TOKENS_FORCED)
		return false;
	return !llm_price(run->room->llm, model_of(run), input, ASK_TOKENS_FORCED, &cost) ||
	       cost <= left.cost;
}

/* The whole conversation where the purse affords it, else the task and the last outputs. */
static void plead(struct run *run, struct text news)
{
	struct brief brief = brief_of(run);
	struct telling request = telling_new();

	brief_forced(&brief, run->reason, news, &request);
	telling_say(&request, LLM_USER, &run->conversation);
	if (!affords(run, &run->conversation)) {
		conversation_done(&run->conversation);
		conversation_add(
			&run->conversation, LLM_SYSTEM,
			text_of("Answer from the work done so far. Be brief and complete."),
			(struct text){0});
		brief_forced(&brief, run->reason, news, &request);
		telling_say(&request, LLM_USER, &run->conversation);
	}
	telling_free(&request);
}

void run_say_plea(struct run *run, struct text variables)
{
	auto_evbuffer struct evbuffer *news = evbuffer_new();
	int64_t max = run->room->config->max_output;

	if (max > PLEA_TEXT_MAX)
		max = PLEA_TEXT_MAX;
	brief_clip(text_in(run->last_news), max, news);
	brief_clip(text_in(run->news), max, news);
	if (variables.size) {
		evbuffer_add_printf(news, "\n[variables]\n");
		brief_clip(variables, max, news);
	}
	plead(run, text_in(news));
}

void run_ask_model(struct run *run, enum llm_kind kind, int64_t max_tokens)
{
	bool forced = kind == LLM_FORCED;
	struct ask_options options = {
		.budget = run->budget,
		.reserve = forced ? &run->reserve : NULL,
		.run = run->id,
		.number = forced ? run_next_call(run) : ASK_TURN,
		.request = {.model = model_of(run),
			    .messages = run->conversation.messages,
			    .message_count = run->conversation.count,
			    .max_tokens = max_tokens,
			    .deadline = run->deadline,
			    .kind = kind,
			    .depth = run->depth,
			    .turn = run->turn ? run->turn - 1 : 0},
	};

	run->ask = ask_start(run->room, &options, run_on_ask, run);
}
