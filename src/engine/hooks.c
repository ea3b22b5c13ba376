#include "engine/hooks.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/money.h"

/* Calls a hook if there is one; rlmd_job_free() from inside of it is put off. */
#define TELL(hooks, hook, ...)                                                                     \
	do {                                                                                       \
		bool telling_ = (hooks)->telling;                                                  \
		(hooks)->telling = true;                                                           \
		if ((hooks)->of.hook)                                                              \
			(hooks)->of.hook((hooks)->of.owner, (hooks)->job, __VA_ARGS__);            \
		(hooks)->telling = telling_;                                                       \
	} while (0)

/* Facts of a run that its later events do not repeat. */
struct known_run {
	char *id, *model; /* owned */
	char *task;       /* owned */
	size_t task_size;
	int64_t depth, began; /* milliseconds of the trace */
	bool is_subcall;      /* code or a plan has asked for it */
};

static void known_run_free(void *freed)
{
	struct known_run *run = freed;

	free(run->id);
	free(run->model);
	free(run->task);
	free(run);
}

void hooks_done(struct hooks *hooks)
{
	tdestroy(hooks->runs, known_run_free);
}

static int compare(const void *left, const void *right)
{
	const struct known_run *a = left, *b = right;

	return strcmp(a->id, b->id);
}

static struct known_run *find(const struct hooks *hooks, const json_t *event)
{
	struct known_run key = {.id = (char *)json_get_string(event, "run")};
	struct known_run *const *found = tfind(&key, &hooks->runs, compare);

	return found ? *found : NULL;
}

static int64_t depth_of(const struct hooks *hooks, const json_t *event)
{
	const struct known_run *run = find(hooks, event);

	return run ? run->depth : 0;
}

static int64_t money(const json_t *object, const char *key)
{
	const json_t *cost = json_object_get(object, key);

	return json_is_number(cost) ? money_from_dollars(json_number_value(cost)) : -1;
}

static void on_run(struct hooks *hooks, const json_t *event)
{
	struct rlmd_text task = json_get_text(event, "task");
	struct known_run *run = xcalloc(1, sizeof *run);

	*run = (struct known_run){
		.id = xstrdup(json_get_string(event, "run")),
		.model = xstrdup(json_get_string(event, "model")),
		.task = text_copy(task),
		.task_size = task.size,
		.depth = json_get_integer(event, "depth", 0),
		.began = json_get_integer(event, "ms", 0),
		.is_subcall = json_is_string(json_object_get(event, "parent")),
	};
	xpresent(tsearch(run, &hooks->runs, compare));
}

static void on_response(struct hooks *hooks, const json_t *event)
{
	const json_t *response = json_object_get(event, "response");
	struct rlmd_iteration iteration = {
		.size = sizeof iteration,
		.run = json_get_string(event, "run"),
		.depth = depth_of(hooks, event),
		.number = json_get_integer(event, "index", 0) + 1,
		.model = json_get_string(event, "model"),
		.response = json_get_text(response, "content"),
		.input_tokens = json_get_integer(json_object_get(event, "prompt"), "tokens", 0),
		.output_tokens = json_get_integer(response, "tokens", 0),
		.cost = money(response, "cost"),
		.duration_ms = json_get_integer(event, "duration", 0),
	};

	TELL(hooks, iteration, &iteration);
}

/* The look at the inputs has no index, and comes before the first turn. */
static void on_code(struct hooks *hooks, const json_t *event)
{
	struct rlmd_output output = {
		.size = sizeof output,
		.run = json_get_string(event, "run"),
		.depth = depth_of(hooks, event),
		.iteration = json_get_integer(event, "index", -1) + 1,
		.code = json_get_text(event, "code"),
		.standard_output = json_get_text(event, "stdout"),
		.standard_error = json_get_text(event, "stderr"),
		.error = json_get_text(event, "error"),
		.duration_ms = json_get_integer(event, "duration", 0),
	};

	TELL(hooks, output, &output);
}

static const char *error_in(const json_t *event)
{
	const json_t *error = json_object_get(event, "error");

	return json_is_object(error) ? json_get_string(error, "kind") : NULL;
}

/* Turns and forced answers are a run's own. */
static void on_call(struct hooks *hooks, const json_t *event)
{
	const char *kind = json_get_string(event, "kind");
	struct rlmd_subcall subcall = {
		.size = sizeof subcall,
		.kind = RLMD_SUBCALL_LLM,
		.run = json_get_string(event, "run"),
		.depth = depth_of(hooks, event),
		.model = json_get_string(event, "model"),
		.prompt = json_get_text(event, "prompt"),
		.answer = json_get_text(event, "response"),
		.tokens = json_get_integer(event, "tokens", 0),
		.cost = money(event, "cost"),
		.duration_ms = json_get_integer(event, "duration", 0),
		.error = error_in(event),
	};

	if (!strcmp(kind, "llm_query") || !strcmp(kind, "direct"))
		TELL(hooks, subcall, &subcall);
}

static void on_end(struct hooks *hooks, const json_t *event)
{
	const json_t *usage = json_object_get(event, "usage");
	struct known_run *run = find(hooks, event);
	struct rlmd_subcall subcall = {.size = sizeof subcall, .kind = RLMD_SUBCALL_RUN};

	if (!run)
		return;
	subcall.run = run->id;
	subcall.depth = run->depth;
	subcall.model = run->model;
	subcall.prompt = text_from(run->task, run->task_size);
	subcall.answer = json_get_text(event, "finalAnswer");
	subcall.tokens = json_get_integer(usage, "tokens", 0);
	subcall.cost = json_get_bool(usage, "costComplete", true) ? money(usage, "cost") : -1;
	subcall.duration_ms = json_get_integer(event, "ms", 0) - run->began;
	subcall.error = error_in(event);
	if (run->is_subcall)
		TELL(hooks, subcall, &subcall);
	tdelete(run, &hooks->runs, compare);
	known_run_free(run);
}

/* Of a run that asks for sub-runs the hook of sub-calls is told at its end. */
static void (*const tellers[TRACE_KINDS])(struct hooks *, const json_t *) = {
	[TRACE_RUN] = on_run,       [TRACE_RESPONSE] = on_response,
	[TRACE_CODE] = on_code,     [TRACE_DEMONSTRATION] = on_code,
	[TRACE_LLM_CALL] = on_call, [TRACE_END] = on_end,
};

/* Of which the hook `event` hears. */
static trace_kinds lines_of(const struct rlmd_hooks *hooks)
{
	trace_kinds kinds = 0;

	if (!hooks->event || !hooks->events)
		return hooks->event ? TRACE_ALL : 0;
	for (const char *const *name = hooks->events; *name; name++)
		kinds |= trace_only(trace_kind_of(*name));
	return kinds;
}

/* Of which the others are made; and the beginnings and ends of runs, whose depths they are told. */
static trace_kinds structs_of(const struct rlmd_hooks *hooks)
{
	trace_kinds kinds = 0;

	if (hooks->iteration)
		kinds |= trace_only(TRACE_RESPONSE);
	if (hooks->output)
		kinds |= trace_only(TRACE_CODE) | trace_only(TRACE_DEMONSTRATION);
	if (hooks->subcall)
		kinds |= trace_only(TRACE_LLM_CALL);
	return kinds ? kinds | trace_only(TRACE_RUN) | trace_only(TRACE_END) : 0;
}

bool hooks_begin(struct hooks *hooks, struct rlmd_error *err)
{
	for (const char *const *name = hooks->of.events; name && *name; name++)
		if (trace_kind_of(*name) == TRACE_KINDS)
			return error_set(err, RLMD_ERROR_USAGE,
					 "rlmd_hooks.events names \"%s\", which is none of the "
					 "trace's events (docs/trace.md lists them)",
					 *name);
	hooks->lines = lines_of(&hooks->of);
	hooks->structs = structs_of(&hooks->of);
	hooks->of.events = NULL; /* was lent */
	return true;
}

static void tell_line(struct hooks *hooks, enum trace_kind kind, const json_t *event)
{
	auto_evbuffer struct evbuffer *line = NULL;

	if (!hooks->of.event || !(hooks->lines & trace_only(kind)))
		return;
	line = buffer_new();
	json_write(event, false, line);
	TELL(hooks, event, text_in(line));
}

void hooks_tell_event(struct hooks *hooks, enum trace_kind kind, const json_t *event)
{
	tell_line(hooks, kind, event);
	if (hooks->structs & trace_only(kind) && tellers[kind])
		tellers[kind](hooks, event);
}

void hooks_tell_code(struct hooks *hooks, const char *run, int depth, int iteration,
		     struct rlmd_text text)
{
	struct rlmd_code code = {
		.size = sizeof code,
		.run = run,
		.depth = depth,
		.iteration = iteration,
		.code = text,
	};

	TELL(hooks, code, &code);
}

void hooks_tell_budget_warning(struct hooks *hooks, const char *text)
{
	TELL(hooks, budget_warning, text);
}

void hooks_tell_delta(struct hooks *hooks, struct rlmd_text words)
{
	TELL(hooks, delta, words);
}

void hooks_tell_check(struct hooks *hooks, struct rlmd_text answer, struct rlmd_check *check)
{
	TELL(hooks, check, answer, check);
}

bool hooks_allow(struct hooks *hooks, const struct rlmd_activity *activity, struct rlmd_error *err)
{
	struct rlmd_error why = {0};
	bool telling = hooks->telling, allowed;

	if (!hooks->of.before)
		return true;
	hooks->telling = true;
	allowed = hooks->of.before(hooks->of.owner, hooks->job, activity, &why);
	hooks->telling = telling;
	if (allowed)
		return true;
	if (!*why.text)
		error_set(&why, why.kind, "the host refuses it");
	if (!why.kind)
		why.kind = RLMD_ERROR_REFUSED;
	*err = why;
	return false;
}

void hooks_tell_end(struct hooks *hooks, const struct rlmd_result *result)
{
	if (hooks->of.end)
		hooks->of.end(hooks->of.owner, hooks->job, result);
}
