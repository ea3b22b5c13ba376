/*
 * What a run says to its model: the system prompt, its turns, and the plea for
 * an answer when it may not go on.
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

/* Characters of the last outputs, of the news and of the listing in a plea: what is affordable. */
static const int64_t plea_sizes[] = {8000, 2000, 400};

static struct brief brief_of(const struct run *run)
{
	return (struct brief){
		.facts = room_facts(run->room),
		.prompts = run_prompts(run),
		.budget = run->budget,
		.context = &run->context,
		.task = text_from(run->task, run->task_size),
		.depth = run->depth,
		.turn = run->turn,
	};
}

const char *run_model(const struct run *run)
{
	if (run->model)
		return run->model;
	return run->depth ? run->room->subcall_model : run->room->model;
}

const struct prompt_set *run_prompts(const struct run *run)
{
	return room_prompts(run->room, run->depth);
}

void run_say_system(struct run *run)
{
	struct telling system = telling_new();
	struct brief brief = brief_of(run);

	history_init(&run->history, brief.prompts, llm_window(run->room->llm, run_model(run)));
	brief_system(&brief, run->depth ? run->caller.parent->budget : NULL, &system);
	telling_say(&system, LLM_SYSTEM, &run->conversation);
	telling_free(&system);
}

/* What no longer fits into the model's window is summed up, which the user is told once. */
static void make_room(struct run *run)
{
	int64_t before = history_measure(&run->history, &run->conversation);

	if (!history_compact(&run->history, &run->conversation))
		return;
	record_compaction(run->room->trace, run->id, run->turn - 1, (int64_t)run->history.taken,
			  before, history_measure(&run->history, &run->conversation));
	if (!run->forgot)
		run_warn(run, "The conversation outgrew the model's window, its older turns were "
			      "replaced by a summary");
	run->forgot = true;
}

static void say_last_news(struct run *run)
{
	auto_evbuffer struct evbuffer *news = evbuffer_new();
	struct telling turn = telling_new();
	struct brief brief = brief_of(run);

	history_clip(&run->history, text_in(run->last_news), news);
	if (run->turn == 1)
		brief_first_turn(&brief, text_in(news), &turn);
	else
		brief_turn(&brief, text_in(news), &turn);
	telling_say(&turn, LLM_USER, &run->conversation);
	telling_free(&turn);
	make_room(run);
}

static void say_bare_turn(struct run *run)
{
	struct telling turn = telling_new();
	struct brief brief = brief_of(run);

	brief_first_turn_bare(&brief, &turn);
	telling_say(&turn, LLM_USER, &run->conversation);
	telling_free(&turn);
	history_measure(&run->history, &run->conversation);
}

bool run_say_look(struct run *run, struct evbuffer *code)
{
	struct telling opening = telling_new(), look = telling_new();
	struct brief brief = brief_of(run);

	run->looked = brief_demonstration(&brief, code, &look);
	if (run->looked) {
		brief_opening(&brief, &opening);
		telling_say(&opening, LLM_USER, &run->conversation);
		telling_say(&look, LLM_ASSISTANT, &run->conversation);
		history_begin(&run->history, &run->conversation);
	}
	telling_free(&opening);
	telling_free(&look);
	return run->looked;
}

int64_t run_plea_size(const struct run *run)
{
	struct brief brief = brief_of(run);

	return brief_plea_size(&brief, gauges_look(&run->room->gauges, run->room->model));
}

/* So that the forced answer can be asked for with all of what is said now. */
static void expect_plea(struct run *run)
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
		evbuffer_drain(run->last_news, evbuffer_get_length(run->last_news));
		evbuffer_add_buffer(run->last_news, run->news);
		say_last_news(run);
	}
	expect_plea(run);
}

bool run_say_less(struct run *run)
{
	if ((run->turn == 1 && !run->looked) || run->shrunk++ == SHRINKS_MAX)
		return false;
	history_shrink(&run->history);
	conversation_drop_last(&run->conversation);
	say_last_news(run);
	return true;
}

void run_note(struct run *run, const char *name, struct rlmd_text output)
{
	brief_note(run_prompts(run), name, output, run->news);
}

void run_note_unknown(struct run *run, struct rlmd_text variables)
{
	if (!variables.size)
		variables = text_of("none but the inputs");
	brief_unknown_variable(run_prompts(run), run->response.value, variables, run->news);
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
	int64_t max = run->room->config->max_output;

	record_demonstration(run->room->trace, run->id, code, block, max);
	brief_block(run->block_number, block, max, run->news);
}

void run_tell_block(struct run *run, const struct worker_block *block)
{
	int64_t max = run->room->config->max_output;

	record_block(run->room->trace, run->id, run->turn - 1,
		     run->response.blocks[run->next_block], block, max);
	brief_block(run->block_number, block, max, run->news);
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
	int64_t input = ask_input_bound(run->room, run_model(run), conversation->messages,
					conversation->count);
	struct budget_amount left = budget_remaining(run->budget);
	int64_t cost;

	left.tokens = money_add(left.tokens, run->reserve.charge.amount.tokens);
	left.cost = money_add(left.cost, run->reserve.charge.amount.cost);
	if (left.tokens < input + output)
		return false;
	return !llm_price(run->room->llm, run_model(run), input, output, &cost) ||
	       cost <= left.cost;
}

static void plead(struct run *run, int64_t max)
{
	auto_evbuffer struct evbuffer *news = evbuffer_new();
	struct telling request = telling_new();
	struct brief brief = brief_of(run);

	if (max > run->room->config->max_output)
		max = run->room->config->max_output;
	brief_clip(text_in(run->last_news), max, news);
	brief_clip(text_in(run->news), max, news);
	brief_forced(&brief, run->reason, text_in(news), &request);
	if (run->worded)
		telling_note(&request, run_prompts(run), "only_code");
	telling_say(&request, LLM_USER, &run->conversation);
	telling_free(&request);
}

static bool fits(struct run *run)
{
	int64_t tokens = history_measure(&run->history, &run->conversation);

	return tokens + ASK_TOKENS_FORCED <= run->history.window &&
	       affords(run, reserve_output(run->room, run_model(run), ASK_TOKENS_FORCED));
}

/* The whole conversation, and a request at its end; or of its turns the latest that fit. */
static bool plead_at_the_end(struct run *run)
{
	plead(run, plea_sizes[0]);
	while (!fits(run))
		if (!history_forget(&run->history, &run->conversation))
			return false;
	return true;
}

/* Without the conversation: the task, and as much of the last outputs as the purse affords. */
static void plead_in_short(struct run *run, size_t size)
{
	int64_t output = reserve_output(run->room, run_model(run), ASK_TOKENS_FORCED / 4);
	bool enough;

	do {
		conversation_done(&run->conversation);
		conversation_add(
			&run->conversation, LLM_SYSTEM,
			text_of("Answer from the work done so far. Be brief and complete."),
			(struct rlmd_text){0});
		plead(run, plea_sizes[size]);
		enough = affords(run, output);
	} while (!enough && ++size < sizeof plea_sizes / sizeof *plea_sizes);
}

void run_say_plea(struct run *run)
{
	run->shrunk = 0;
	if (!plead_at_the_end(run))
		plead_in_short(run, 0);
}

bool run_say_short_plea(struct run *run)
{
	if (run->shrunk++)
		return false;
	plead_in_short(run, 1);
	return true;
}

bool run_say_plea_for_words(struct run *run, struct rlmd_text reply)
{
	struct telling request;

	if (run->worded)
		return false;
	request = telling_new();
	run->worded = true;
	run->shrunk = 0;
	telling_note(&request, run_prompts(run), "only_code");
	conversation_add(&run->conversation, LLM_ASSISTANT, reply, (struct rlmd_text){0});
	telling_say(&request, LLM_USER, &run->conversation);
	telling_free(&request);
	if (history_measure(&run->history, &run->conversation) + ASK_TOKENS_FORCED >
		    run->history.window ||
	    !affords(run, ASK_TOKENS_FORCED / 4))
		plead_in_short(run, 0);
	return true;
}

/* Where the time is what is scarce, no more than comes within it: rather an answer that is cut. */
static int64_t plea_output(const struct run *run, int64_t usual)
{
	bool hurried = run->stop == STOP_MAX_TIME || run->stop == STOP_INTERRUPTED;
	int64_t in_time = pace_output(&run->pace, run->deadline - clock_ms());

	return hurried && in_time < usual ? in_time : usual;
}

void run_ask_model(struct run *run, enum llm_kind kind, int64_t max_tokens)
{
	bool forced = kind == LLM_FORCED;
	int64_t most = run->history.window / REQUEST_WINDOW_PART;
	int64_t wanted = forced ? plea_output(run, max_tokens)
				: request_output(run->room->llm, run->room->config, run_model(run),
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
			    .turn = run->turn ? run->turn - 1 : 0},
	};

	if (kind == LLM_TURN && llm_keeps(run->room->llm))
		exchange_id(&options.request, run->asked);
	run->ask = ask_start(run->room, &options, run_on_ask, run);
}
