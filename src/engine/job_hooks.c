#include "engine/job_hooks.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/money.h"
#include "engine/job.h"

/* Calls a hook that there is; from inside it the job is not freed, but doomed. */
#define TELL(job, hook, ...)                                                                       \
	do {                                                                                       \
		bool telling_ = (job)->telling;                                                    \
		(job)->telling = true;                                                             \
		if ((job)->hooks.of.hook)                                                          \
			(job)->hooks.of.hook((job)->hooks.of.owner, job, __VA_ARGS__);             \
		(job)->telling = telling_;                                                         \
	} while (0)

/* What a run's later events do not say again. */
struct told_run {
	char *id, *model; /* owned */
	char *task;       /* owned */
	size_t task_size;
	int64_t depth, began; /* milliseconds of the trace */
	bool is_subcall;      /* code or a plan has asked for it */
	LIST_ENTRY(told_run) entry;
};

static void told_run_free(struct told_run *run)
{
	if (!run)
		return;
	LIST_REMOVE(run, entry);
	free(run->id);
	free(run->model);
	free(run->task);
	free(run);
}

void job_hooks_done(struct job_hooks *hooks)
{
	while (!LIST_EMPTY(&hooks->runs))
		told_run_free(LIST_FIRST(&hooks->runs));
}

static struct told_run *find(const struct rlmd_job *job, const json_t *event)
{
	const char *id = json_get_string(event, "run");
	struct told_run *run;

	LIST_FOREACH(run, &job->hooks.runs, entry)
	if (!strcmp(run->id, id))
		return run;
	return NULL;
}

static int64_t depth_of(const struct rlmd_job *job, const json_t *event)
{
	const struct told_run *run = find(job, event);

	return run ? run->depth : 0;
}

static int64_t money(const json_t *object, const char *key)
{
	const json_t *cost = json_object_get(object, key);

	return json_is_number(cost) ? money_from_dollars(json_number_value(cost)) : -1;
}

static void on_run(struct rlmd_job *job, const json_t *event)
{
	struct rlmd_text task = json_get_text(event, "task");
	struct told_run *run = xcalloc(1, sizeof *run);

	*run = (struct told_run){
		.id = xstrdup(json_get_string(event, "run")),
		.model = xstrdup(json_get_string(event, "model")),
		.task = text_copy(task),
		.task_size = task.size,
		.depth = json_get_integer(event, "depth", 0),
		.began = json_get_integer(event, "ms", 0),
		.is_subcall = json_is_string(json_object_get(event, "parent")),
	};
	LIST_INSERT_HEAD(&job->hooks.runs, run, entry);
}

static void on_response(struct rlmd_job *job, const json_t *event)
{
	const json_t *response = json_object_get(event, "response");
	struct rlmd_iteration iteration = {
		.size = sizeof iteration,
		.run = json_get_string(event, "run"),
		.depth = depth_of(job, event),
		.number = json_get_integer(event, "index", 0) + 1,
		.model = json_get_string(event, "model"),
		.response = json_get_text(response, "content"),
		.input_tokens = json_get_integer(json_object_get(event, "prompt"), "tokens", 0),
		.output_tokens = json_get_integer(response, "tokens", 0),
		.cost = money(response, "cost"),
		.duration_ms = json_get_integer(event, "duration", 0),
	};

	TELL(job, iteration, &iteration);
}

/* The look at the inputs has no index, and comes before the first turn. */
static void on_code(struct rlmd_job *job, const json_t *event)
{
	struct rlmd_output output = {
		.size = sizeof output,
		.run = json_get_string(event, "run"),
		.depth = depth_of(job, event),
		.iteration = json_get_integer(event, "index", -1) + 1,
		.code = json_get_text(event, "code"),
		.standard_output = json_get_text(event, "stdout"),
		.standard_error = json_get_text(event, "stderr"),
		.error = json_get_text(event, "error"),
		.duration_ms = json_get_integer(event, "duration", 0),
	};

	TELL(job, output, &output);
}

static const char *error_in(const json_t *event)
{
	const json_t *error = json_object_get(event, "error");

	return json_is_object(error) ? json_get_string(error, "kind") : NULL;
}

/* Turns and forced answers are a run's own. */
static void on_call(struct rlmd_job *job, const json_t *event)
{
	const char *kind = json_get_string(event, "kind");
	struct rlmd_subcall subcall = {
		.size = sizeof subcall,
		.kind = RLMD_SUBCALL_LLM,
		.run = json_get_string(event, "run"),
		.depth = depth_of(job, event),
		.model = json_get_string(event, "model"),
		.prompt = json_get_text(event, "prompt"),
		.answer = json_get_text(event, "response"),
		.tokens = json_get_integer(event, "tokens", 0),
		.cost = money(event, "cost"),
		.duration_ms = json_get_integer(event, "duration", 0),
		.error = error_in(event),
	};

	if (!strcmp(kind, "llm_query") || !strcmp(kind, "direct"))
		TELL(job, subcall, &subcall);
}

static void on_end(struct rlmd_job *job, const json_t *event)
{
	const json_t *usage = json_object_get(event, "usage");
	struct told_run *run = find(job, event);
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
		TELL(job, subcall, &subcall);
	told_run_free(run);
}

static void tell_line(struct rlmd_job *job, const json_t *event)
{
	auto_evbuffer struct evbuffer *line = NULL;

	if (!job->hooks.of.event)
		return;
	line = evbuffer_new();
	json_write(event, false, line);
	TELL(job, event, text_in(line));
}

void job_tell_event(struct rlmd_job *job, const json_t *event)
{
	static const struct {
		const char *name;
		void (*tell)(struct rlmd_job *, const json_t *);
	} events[] = {
		{"run", on_run},       {"response", on_response},
		{"code", on_code},     {"demonstration", on_code},
		{"llm_call", on_call}, {"end", on_end},
	};
	const char *name = json_get_string(event, "event");

	tell_line(job, event);
	for (size_t i = 0; i < sizeof events / sizeof *events; i++)
		if (!strcmp(name, events[i].name))
			events[i].tell(job, event);
}

void job_tell_code(struct rlmd_job *job, const char *run, int depth, int iteration,
		   struct rlmd_text text)
{
	struct rlmd_code code = {
		.size = sizeof code,
		.run = run,
		.depth = depth,
		.iteration = iteration,
		.code = text,
	};

	TELL(job, code, &code);
}

void job_tell_budget_warning(struct rlmd_job *job, const char *text)
{
	TELL(job, budget_warning, text);
}

void job_tell_delta(struct rlmd_job *job, struct rlmd_text words)
{
	TELL(job, delta, words);
}

void job_tell_end(struct rlmd_job *job)
{
	if (job->hooks.of.end)
		job->hooks.of.end(job->hooks.of.owner, job, &job->result);
}
