#include "trace/tree.h"

#include <rlmd/trace.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/money.h"
#include "trace/lines.h"

enum { NESTING_MAX = 32 }; /* of runs: twice what --max-depth allows; a file may say anything */

struct tree {
	json_t *runs;   /* owned: id -> trace, as far as it has come */
	json_t *root;   /* lent out of `runs` */
	json_t *seen;   /* owned: id -> how deep it stands, and what it has used beside its trace */
	json_int_t now; /* "ms" of the last event */
};

struct tree *tree_new(void)
{
	struct tree *tree = xcalloc(1, sizeof *tree);

	tree->runs = json_make_object();
	tree->seen = json_make_object();
	return tree;
}

void tree_free(struct tree *tree)
{
	if (!tree)
		return;
	json_decref(tree->runs);
	json_decref(tree->seen);
	free(tree);
}

json_t *tree_root(const struct tree *tree)
{
	return tree->root;
}

static void copy(json_t *to, const json_t *from, const char *const *keys)
{
	for (; *keys; keys++) {
		json_t *value = json_object_get(from, *keys);

		if (value)
			json_put(to, *keys, json_incref(value));
	}
}

/* False where it stands deeper than any run does, and is left out. */
static bool note_run(struct tree *tree, const json_t *event)
{
	const json_t *above = json_object_get(tree->seen,
					      json_string_value(json_object_get(event, "parent")));
	json_int_t level = above ? json_get_integer(above, "level", 0) + 1 : 0;

	json_put(tree->seen, json_string_value(json_object_get(event, "run")),
		 json_make("{s:I, s:I, s:I}", "level", level, "start", tree->now, "cached",
			   (json_int_t)0));
	return level < NESTING_MAX;
}

static void begin_run(struct tree *tree, const json_t *event)
{
	static const char *const keys[] = {"program", "startedAt",     "depth",    "task",
					   "model",   "promptProfile", "contexts", NULL};
	json_t *run = json_make("{s:O, s:O}", "id", json_object_get(event, "run"), "parentId",
				json_object_get(event, "parent"));
	json_t *parent = json_object_get(tree->runs,
					 json_string_value(json_object_get(event, "parent")));

	copy(run, event, keys);
	json_put(run, "iterations", json_make_array());
	json_put(run, "subcalls", json_make_array());
	json_put(run, "llmCalls", json_make_array());
	json_put(run, "finalAnswer", json_make_string(""));
	json_put(run, "answerSource", json_make_string("error"));
	json_put(tree->runs, json_string_value(json_object_get(event, "run")), run);
	if (parent)
		json_append(json_object_get(parent, "subcalls"), json_incref(run));
	else
		tree->root = run;
}

static void add_response(json_t *run, const json_t *event)
{
	static const char *const keys[] = {"index",    "prompt",    "response",  "model",
					   "provider", "queuedMs",  "startedMs", "duration",
					   "cached",   "journaled", NULL};
	json_t *iteration = json_make_object();

	copy(iteration, event, keys);
	json_put(iteration, "codeExecutions", json_make_array());
	json_append(json_object_get(run, "iterations"), iteration);
}

static const char *const execution_keys[] = {"code", "stdout", "stderr", "error", "duration", NULL};

static void add_demonstration(json_t *run, const json_t *event)
{
	json_t *execution = json_make_object();

	copy(execution, event, execution_keys);
	json_put(run, "demonstration", execution);
}

static void add_execution(json_t *run, const json_t *event)
{
	json_t *iterations = json_object_get(run, "iterations");
	json_t *last = json_array_get(iterations, json_array_size(iterations) - 1);
	json_t *execution = json_make_object();

	copy(execution, event, execution_keys);
	if (last)
		json_append(json_object_get(last, "codeExecutions"), json_incref(execution));
	json_decref(execution);
}

/* Calls end in any order; they stand in the one in which they were made. */
static void add_call(json_t *run, const json_t *event)
{
	static const char *const keys[] = {
		"index",     "kind",     "reason",   "model",  "provider",    "queuedMs",
		"startedMs", "prompt",   "response", "tokens", "inputTokens", "outputTokens",
		"cost",      "duration", "error",    "cached", "journaled",   NULL};
	json_t *calls = json_object_get(run, "llmCalls");
	int64_t index = json_get_integer(event, "index", 0);
	size_t at = json_array_size(calls);
	json_t *call = json_make_object();

	copy(call, event, keys);
	while (at && json_get_integer(json_array_get(calls, at - 1), "index", 0) > index)
		at--;
	json_insert(calls, at, call);
}

/* In a list that only runs with such events have. */
static void add_to_list(json_t *run, const char *name, const json_t *event, const char *const *keys)
{
	json_t *list = json_object_get(run, name);
	json_t *item = json_make_object();

	copy(item, event, keys);
	if (!list) {
		list = json_make_array();
		json_put(run, name, list);
	}
	json_append(list, item);
}

static void add_degraded(json_t *run, const json_t *event)
{
	static const char *const keys[] = {"call", "reason", NULL};

	add_to_list(run, "degraded", event, keys);
}

static void add_function(json_t *run, const json_t *event)
{
	static const char *const keys[] = {"name",     "arguments", "answer",
					   "duration", "error",     NULL};

	add_to_list(run, "functions", event, keys);
}

static void end_run(json_t *run, const json_t *event)
{
	static const char *const keys[] = {"finalAnswer", "answerSource", "usage",
					   "error",       "stopReason",   NULL};

	copy(run, event, keys);
}

/* Saturating: a file may say anything. */
static void add_to(json_int_t *sum, const json_t *object, const char *key)
{
	*sum = money_add(*sum, json_get_integer(object, key, 0));
}

static void note_cached(json_t *seen, const json_t *event)
{
	json_int_t cached = json_get_integer(seen, "cached", 0);

	add_to(&cached, event, "cachedTokens");
	if (cached)
		json_put(seen, "cached", json_make_integer(cached));
}

/* How each adds itself to its run; NULL: it does not. */
static void (*const adders[TRACE_KINDS])(json_t *run, const json_t *event) = {
	[TRACE_DEMONSTRATION] = add_demonstration,
	[TRACE_RESPONSE] = add_response,
	[TRACE_CODE] = add_execution,
	[TRACE_LLM_CALL] = add_call,
	[TRACE_DEGRADED] = add_degraded,
	[TRACE_FUNCTION] = add_function,
	[TRACE_END] = end_run,
};

trace_kinds tree_kinds(void)
{
	trace_kinds kinds = trace_only(TRACE_RUN);

	for (enum trace_kind kind = 0; kind < TRACE_KINDS; kind++)
		if (adders[kind])
			kinds |= trace_only(kind);
	return kinds;
}

/* A root of the same id, be it a plan's, whose id is no run's: work that is done again from its
 * recording, into the same file. */
static bool is_again(const struct tree *tree, const json_t *event)
{
	return !json_object_get(tree->seen, json_string_value(json_object_get(event, "parent"))) &&
	       json_object_get(tree->seen, json_string_value(json_object_get(event, "run")));
}

static void forget(struct tree *tree)
{
	tree->root = NULL;
	json_object_clear(tree->runs);
	json_object_clear(tree->seen);
}

void tree_feed(struct tree *tree, const json_t *event)
{
	const char *name = json_string_value(json_object_get(event, "event"));
	const char *id = json_string_value(json_object_get(event, "run"));
	enum trace_kind kind;
	json_int_t ms;
	json_t *run;

	ms = json_get_integer(event, "ms", 0);
	if (ms > 0)
		tree->now = ms;
	if (!name || !id)
		return;
	if (!strcmp(name, "run") && is_again(tree, event))
		forget(tree);
	if (!strcmp(name, "run") && !json_object_get(tree->seen, id) && note_run(tree, event))
		begin_run(tree, event);
	run = json_object_get(tree->runs, id);
	note_cached(json_object_get(tree->seen, id), event);
	kind = trace_kind_of(name);
	if (run && kind < TRACE_KINDS && adders[kind])
		adders[kind](run, event);
}

/* The usage of a run without an end event, and of all runs below it. */
struct tally {
	int64_t cost;
	json_int_t input, output, cached, iterations, subcalls, calls, cached_calls, depth;
	bool complete; /* every cost is known */
};

static void tally_cost(struct tally *tally, const json_t *cost)
{
	tally->complete &= json_is_number(cost);
	tally->cost = money_add(tally->cost, money_from_dollars(json_number_value(cost)));
}

static void tally_turn(struct tally *tally, const json_t *iteration)
{
	const json_t *response = json_object_get(iteration, "response");

	add_to(&tally->input, json_object_get(iteration, "prompt"), "tokens");
	add_to(&tally->output, response, "tokens");
	tally->iterations++;
	tally->calls++;
	tally->cached_calls += json_get_bool(iteration, "cached", false);
	tally_cost(tally, json_object_get(response, "cost"));
}

static void tally_call(struct tally *tally, const json_t *call)
{
	add_to(&tally->input, call, "inputTokens");
	add_to(&tally->output, call, "outputTokens");
	tally->iterations += text_equal(json_get_text(call, "kind"), "turn");
	tally->calls++;
	tally->cached_calls += json_get_bool(call, "cached", false);
	tally_cost(tally, json_object_get(call, "cost"));
}

static void tally_below(struct tally *tally, const json_t *usage)
{
	json_int_t depth = json_get_integer(usage, "maxDepthReached", 0);

	add_to(&tally->input, usage, "inputTokens");
	add_to(&tally->output, usage, "outputTokens");
	add_to(&tally->cached, usage, "cachedTokens");
	add_to(&tally->iterations, usage, "iterations");
	tally->subcalls = money_add(tally->subcalls, 1);
	add_to(&tally->subcalls, usage, "subcalls");
	add_to(&tally->calls, usage, "llmCalls");
	add_to(&tally->cached_calls, usage, "cachedCalls");
	tally->depth = depth > tally->depth ? depth : tally->depth;
	tally->complete &= json_get_bool(usage, "costComplete", false);
	tally->cost = money_add(
		tally->cost, money_from_dollars(json_number_value(json_object_get(usage, "cost"))));
}

static json_t *tally_usage(const struct tally *tally, json_int_t duration)
{
	return json_make("{s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:o*}",
			 "cost", money_to_dollars(tally->cost), "tokens",
			 (json_int_t)money_add(tally->input, tally->output), "inputTokens",
			 tally->input, "outputTokens", tally->output, "duration", duration,
			 "iterations", tally->iterations, "subcalls", tally->subcalls, "llmCalls",
			 tally->calls, "maxDepthReached", tally->depth, "cachedTokens",
			 tally->cached, "estimated", true, "costComplete", tally->complete,
			 "cachedCalls",
			 tally->cached_calls ? json_make_integer(tally->cached_calls) : NULL);
}

/* Gives a run without an end, and those below it, the usage that their events add up to. It lacks
 * the calls that were under way in the end: so it is an estimate. */
static void complete_usage(const struct tree *tree, json_t *run)
{
	const json_t *seen = json_object_get(tree->seen,
					     json_string_value(json_object_get(run, "id")));
	struct tally tally = {
		.cached = json_get_integer(seen, "cached", 0),
		.depth = json_get_integer(run, "depth", 0),
		.complete = true,
	};
	json_t *each;
	size_t i;

	if (json_object_get(run, "usage"))
		return;
	json_array_foreach (json_object_get(run, "iterations"), i, each)
		tally_turn(&tally, each);
	json_array_foreach (json_object_get(run, "llmCalls"), i, each)
		tally_call(&tally, each);
	json_array_foreach (json_object_get(run, "subcalls"), i, each) {
		complete_usage(tree, each);
		tally_below(&tally, json_object_get(each, "usage"));
	}
	json_put(run, "usage", tally_usage(&tally, tree->now - json_get_integer(seen, "start", 0)));
}

static void on_line(void *owner, const json_t *event, struct rlmd_text line)
{
	(void)line;
	tree_feed(owner, event);
}

json_t *tree_from_lines(struct rlmd_text lines, const char *name, struct rlmd_error *err)
{
	struct tree *tree = tree_new();
	json_t *root = NULL;

	if (!lines_each(lines, on_line, tree, err))
		error_context(err, "%s", name);
	else if (!tree->root)
		error_set(err, RLMD_ERROR_INPUT, "%s is no trace: it has no \"run\" event", name);
	else
		root = json_incref(tree->root);
	if (root)
		complete_usage(tree, root);
	tree_free(tree);
	return root;
}

char *rlmd_trace_tree(struct rlmd_text lines, const char *name, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *out = NULL;
	json_auto_t *tree = NULL;

	if (lines.size && !lines.bytes)
		error_set(err, RLMD_ERROR_USAGE, "a trace of %zu bytes is NULL", lines.size);
	else
		tree = tree_from_lines(lines.bytes ? lines : text_of(""), name ? name : "the trace",
				       err);
	if (!tree)
		return NULL;
	out = buffer_new();
	json_write(tree, false, out);
	return text_drain(out, NULL);
}
