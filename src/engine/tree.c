#include "engine/tree.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"

enum { EVENT_DEPTH_MAX = 32 };

struct tree {
	json_t *runs; /* owned: id -> trace, as far as it has come */
	json_t *root; /* lent out of `runs` */
};

struct tree *tree_new(void)
{
	struct tree *tree = xcalloc(1, sizeof *tree);

	tree->runs = json_object();
	return tree;
}

void tree_free(struct tree *tree)
{
	if (!tree)
		return;
	json_decref(tree->runs);
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
			json_object_set(to, *keys, value);
	}
}

static void begin_run(struct tree *tree, const json_t *event)
{
	static const char *const keys[] = {"depth", "task", "model", "contexts", NULL};
	json_t *run = json_pack("{s:O, s:O}", "id", json_object_get(event, "run"), "parentId",
				json_object_get(event, "parent"));
	json_t *parent = json_object_get(tree->runs,
					 json_string_value(json_object_get(event, "parent")));

	copy(run, event, keys);
	json_object_set_new(run, "iterations", json_array());
	json_object_set_new(run, "subcalls", json_array());
	json_object_set_new(run, "llmCalls", json_array());
	json_object_set_new(run, "finalAnswer", json_string(""));
	json_object_set_new(run, "answerSource", json_string("error"));
	json_object_set_new(tree->runs, json_string_value(json_object_get(event, "run")), run);
	if (parent)
		json_array_append(json_object_get(parent, "subcalls"), run);
	else
		tree->root = run;
}

static void add_response(json_t *run, const json_t *event)
{
	static const char *const keys[] = {"index", "prompt",   "response",
					   "model", "duration", NULL};
	json_t *iteration = json_object();

	copy(iteration, event, keys);
	json_object_set_new(iteration, "codeExecutions", json_array());
	json_array_append_new(json_object_get(run, "iterations"), iteration);
}

static void add_execution(json_t *run, const json_t *event)
{
	static const char *const keys[] = {"code", "stdout", "stderr", "error", "duration", NULL};
	json_t *iterations = json_object_get(run, "iterations");
	json_t *last = json_array_get(iterations, json_array_size(iterations) - 1);
	json_t *execution = json_object();

	copy(execution, event, keys);
	if (last)
		json_array_append(json_object_get(last, "codeExecutions"), execution);
	json_decref(execution);
}

/* Calls end in any order; they stand in the one in which they were made. */
static void add_call(json_t *run, const json_t *event)
{
	static const char *const keys[] = {
		"index",       "kind",         "reason", "model",    "prompt", "response", "tokens",
		"inputTokens", "outputTokens", "cost",   "duration", "error",  NULL};
	json_t *calls = json_object_get(run, "llmCalls");
	int64_t index = json_get_integer(event, "index", 0);
	size_t place = json_array_size(calls);
	json_t *call = json_object();

	copy(call, event, keys);
	while (place && json_get_integer(json_array_get(calls, place - 1), "index", 0) > index)
		place--;
	json_array_insert_new(calls, place, call);
}

static void add_degraded(json_t *run, const json_t *event)
{
	static const char *const keys[] = {"call", "reason", NULL};
	json_t *answers = json_object_get(run, "degraded");
	json_t *answer = json_object();

	copy(answer, event, keys);
	if (!answers) {
		answers = json_array();
		json_object_set_new(run, "degraded", answers);
	}
	json_array_append_new(answers, answer);
}

static void end_run(json_t *run, const json_t *event)
{
	static const char *const keys[] = {"finalAnswer", "answerSource", "usage",
					   "error",       "stopReason",   NULL};

	copy(run, event, keys);
}

void tree_feed(struct tree *tree, json_t *event)
{
	static const struct {
		const char *name;
		void (*add)(json_t *run, const json_t *event);
	} kinds[] = {
		{"response", add_response}, {"code", add_execution}, {"llm_call", add_call},
		{"degraded", add_degraded}, {"end", end_run},
	};
	const char *name = json_string_value(json_object_get(event, "event"));
	const char *id = json_string_value(json_object_get(event, "run"));
	json_t *run;

	if (!name || !id)
		return;
	if (!strcmp(name, "run") && !json_object_get(tree->runs, id))
		begin_run(tree, event);
	run = json_object_get(tree->runs, id);
	for (size_t i = 0; run && i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(name, kinds[i].name))
			kinds[i].add(run, event);
}

/*
 * A bad line is forgiven where a run was killed while it wrote it: at the end, without a line feed,
 * and before the first event of the next run that was told to append to the same file.
 */
static bool feed_lines(struct tree *tree, struct text lines, struct error *err)
{
	const char *stop, *at = lines.bytes, *end = lines.bytes + lines.size;
	struct error bad = {0};

	for (size_t number = 1; (stop = memchr(at, '\n', (size_t)(end - at))); number++) {
		struct error error = {0};
		json_auto_t *event = json_read(text_from(at, (size_t)(stop - at)), EVENT_DEPTH_MAX,
					       &error);

		if (bad.kind && json_get_integer(event, "seq", -1))
			break;
		if (event)
			tree_feed(tree, event);
		else
			error_context(&error, "line %zu", number);
		bad = error;
		at = stop + 1;
	}
	if (bad.kind)
		return error_set(err, ERROR_INPUT, "%s", bad.text);
	return true;
}

json_t *tree_from_lines(struct text lines, const char *name, struct error *err)
{
	struct tree *tree = tree_new();
	json_t *root = NULL;

	if (!feed_lines(tree, lines, err))
		error_context(err, "%s", name);
	else if (!tree->root)
		error_set(err, ERROR_INPUT, "%s is no trace: it has no \"run\" event", name);
	else
		root = json_incref(tree->root);
	tree_free(tree);
	return root;
}

json_t *tree_from_file(const char *path, struct error *err)
{
	size_t size;
	auto_free char *bytes = file_read(path, TREE_TRACE_MAX, &size, err);

	return bytes ? tree_from_lines(text_from(bytes, size), path, err) : NULL;
}
