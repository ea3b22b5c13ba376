#include "engine/engine.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/money.h"
#include "engine/ask.h"
#include "engine/request.h"
#include "engine/reserve.h"
#include "engine/room.h"
#include "engine/run.h"
#include "prompt/brief.h"
#include "prompt/conversation.h"
#include "trace/result.h"
#include "trace/trace.h"

struct engine {
	struct room room;
	struct engine_config config; /* its strings are lent */
	struct run *root;            /* owned; NULL once it has delivered */
	json_t *notes;               /* owned: what loading the context had to say */
	engine_event_fn *event;
	engine_done_fn *done;
	void *owner;
	int64_t started;
	bool interrupted;
};

static void on_trace(void *owner, json_t *event)
{
	struct engine *engine = owner;

	if (engine->event)
		engine->event(engine->owner, event);
}

static json_t *warnings_of(struct engine *engine)
{
	json_t *warnings = json_copy((json_t *)run_warnings(engine->root));
	json_t *more = llm_take_warnings(engine->room.llm);

	json_array_extend(warnings, engine->notes);
	json_array_extend(warnings, more);
	json_decref(more);
	return warnings;
}

static json_t *result_object(struct engine *engine, const struct run_result *run,
			     const struct rlmd_error *err)
{
	json_t *object = json_pack(
		"{s:s, s:b, s:o, s:O, s:o, s:o, s:o, s:s}", "event", "result", "success",
		err->kind == RLMD_ERROR_NONE, "output", json_from_text(run->answer), "trace",
		trace_tree(engine->room.trace), "usage", result_usage(run_budget(engine->root)),
		"warnings", warnings_of(engine), "sandbox", sandbox_report(engine->room.sandbox),
		"stopReason", stop_name(run->stop));

	json_object_set_new(object, "model", json_string(engine->room.model));
	json_object_set_new(object, "provider", json_string(llm_provider(engine->room.llm)));
	json_object_set_new(object, "priceTable", json_string(llm_price_date(engine->room.llm)));
	if (err->kind)
		json_object_set_new(object, "error",
				    result_error(err, llm_provider(engine->room.llm)));
	return object;
}

static void on_root(void *owner, const struct run_result *run)
{
	struct engine *engine = owner;
	struct engine_result result = {
		.failure = run->error.kind,
		.error = run->error,
		.forced = run->forced,
	};

	if (run->forced && engine->config.strict && run->stop != STOP_INTERRUPTED) {
		error_set(&result.error, RLMD_ERROR_BUDGET,
			  "the answer was forced (%s), and --strict takes that for a failure",
			  stop_name(run->stop));
		result.failure = RLMD_ERROR_BUDGET;
	}
	result.object = result_object(engine, run, &result.error);
	result.output = json_get_text(result.object, "output");
	run_free(take_pointer(&engine->root));
	trace_event(engine->room.trace, json_incref(result.object));
	engine->done(engine->owner, &result);
	json_decref(result.object);
}

struct engine *engine_start(struct event_base *base, struct sandbox *sandbox, struct llm *llm,
			    const struct engine_config *config, struct rlmd_text task,
			    const struct context *context, engine_event_fn *event,
			    engine_done_fn *done, void *owner)
{
	struct engine *engine = xcalloc(1, sizeof *engine);
	struct run_options options = {.task = task, .context = context};

	engine->config = *config;
	engine->event = event;
	engine->done = done;
	engine->owner = owner;
	engine->started = clock_ms();
	engine->notes = context->notes ? json_copy(context->notes) : json_array();
	room_init(&engine->room, base, sandbox, llm, &engine->config);
	room_open(&engine->room, true, on_trace, engine);
	engine->root = run_start(&engine->room, &options, on_root, engine);
	return engine;
}

void engine_free(struct engine *engine)
{
	if (!engine)
		return;
	run_free(engine->root);
	room_close(&engine->room);
	json_decref(engine->notes);
	free(engine);
}

void engine_interrupt(struct engine *engine)
{
	if (engine->interrupted || !engine->root)
		return;
	engine->interrupted = true;
	run_interrupt(engine->root, clock_ms() + engine->config.grace_ms);
}

struct engine_status engine_status(const struct engine *engine)
{
	struct engine_status status = {
		.depth = room_deepest(&engine->room),
		.calls_in_flight = engine->room.calls_in_flight,
		.elapsed_ms = clock_ms() - engine->started,
		.max_cost = engine->config.limits.cost,
		.interrupted = engine->interrupted,
	};

	if (engine->root) {
		const struct budget_usage *usage = budget_usage(run_budget(engine->root));

		status.turn = run_turn(engine->root);
		status.tokens = usage->tokens;
		status.cost = usage->cost;
	}
	return status;
}

void engine_stop(struct engine *engine, const struct rlmd_error *err)
{
	run_stop(engine->root, err);
}

/* What a run says first, with what it has set aside and counted by then. */
static void first_request(struct conversation *conversation, const struct room *room,
			  const struct brief *brief, struct budget *budget)
{
	auto_evbuffer struct evbuffer *code = evbuffer_new();
	struct draft draft = draft_new(), look = draft_new();
	struct reserve reserve;

	brief_system(brief, NULL, &draft);
	draft_say(&draft, LLM_SYSTEM, conversation);
	reserve_set(&reserve, room, budget, room->model,
		    brief_forced_size(brief, estimators_look(&room->estimators, room->model)));
	if (brief_demonstration(brief, code, &look)) {
		brief_opening(brief, &draft);
		draft_say(&draft, LLM_USER, conversation);
		draft_say(&look, LLM_ASSISTANT, conversation);
		budget_count_iteration(budget);
		brief_first_turn(brief, text_of("(what the block prints)"), &draft);
	} else {
		budget_count_iteration(budget);
		brief_first_turn_bare(brief, &draft);
	}
	draft_say(&draft, LLM_USER, conversation);
	reserve_drop(&reserve);
	draft_free(&draft);
	draft_free(&look);
}

/* All tokens of one kind, asked of one model; false: it has no price. */
static bool dearest(const struct engine *engine, const char *model, int64_t tokens,
		    int64_t *ret_cost)
{
	int64_t input;

	if (!llm_price(engine->room.llm, model, tokens, 0, &input) ||
	    !llm_price(engine->room.llm, model, 0, tokens, ret_cost))
		return false;
	if (*ret_cost < input)
		*ret_cost = input;
	return true;
}

/* The most that the limits allow: code may spend all tokens, on what is the dearest. */
static json_t *worst_cost(const struct engine *engine)
{
	const struct budget_limits *limits = &engine->config.limits;
	int64_t cost, calls;

	if (!dearest(engine, engine->room.model, limits->tokens, &cost) ||
	    !dearest(engine, engine->room.subcall_model, limits->tokens, &calls))
		return json_null();
	if (cost < calls)
		cost = calls;
	if (cost > limits->cost)
		cost = limits->cost;
	return result_cost(cost != BUDGET_UNLIMITED, cost);
}

json_t *engine_dry_run(struct llm *llm, const struct engine_config *config, struct rlmd_text task,
		       const struct context *context)
{
	struct engine engine = {.config = *config};
	struct budget *budget = budget_new(&config->limits, NULL, NULL);
	struct conversation conversation = {0};
	struct brief brief = {.budget = budget, .context = context, .task = task, .turn = 1};
	json_t *contexts = json_array();
	int64_t first = 0;
	json_t *object;

	room_init(&engine.room, NULL, NULL, llm, &engine.config);
	brief.facts = room_facts(&engine.room);
	brief.prompts = engine.room.prompts;
	first_request(&conversation, &engine.room, &brief, budget);
	for (size_t i = 0; i < conversation.count; i++)
		first += text_tokens(conversation.messages[i].text);
	for (size_t i = 0; i < context->count; i++) {
		const struct text_scan *scan = memfile_scan(context->inputs[i].file);

		json_array_append_new(contexts, json_pack("{s:s, s:I, s:I, s:I, s:s}", "name",
							  context->inputs[i].name, "length",
							  (json_int_t)scan->characters, "bytes",
							  (json_int_t)scan->bytes, "tokenEstimate",
							  (json_int_t)text_scan_tokens(scan),
							  "contentType", context->inputs[i].type));
	}
	object = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:o, s:s}", "provider",
			   llm_provider(llm), "model", engine.room.model, "subcallModel",
			   engine.room.subcall_model, "contexts", contexts, "systemPrompt",
			   json_from_text(conversation.messages[0].text), "firstTurn",
			   json_from_text(conversation.messages[conversation.count - 1].text),
			   "firstRequestTokens", (json_int_t)first, "worstCaseCost",
			   worst_cost(&engine), "priceTable", llm_price_date(llm));
	request_tell(llm, config, engine.room.model, ASK_TOKENS_TURN, object);
	if (conversation.count > 2) {
		json_object_set_new(object, "opening",
				    json_from_text(conversation.messages[1].text));
		json_object_set_new(object, "demonstration",
				    json_from_text(conversation.messages[2].text));
	}
	conversation_done(&conversation);
	budget_free(budget);
	return object;
}
