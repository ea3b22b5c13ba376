/*
 * examples/agent.c - inside somebody's agent: a tool among others, on the agent's own event loop.
 *
 *     cc agent.c $(pkg-config --cflags --libs rlmd libevent_core) -o agent
 *     OPENAI_API_KEY=... ./agent QUESTION FILE...
 *
 * `read` shows a short file, `analyse` hands a long one to a job of rlmd: all at the same time.
 */
#include <event2/event.h>
#include <rlmd/context.h>
#include <rlmd/engine.h>
#include <rlmd/job.h>
#include <rlmd/provider.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHORT = 200 }; /* characters: what fits the prompt of the agent's own model */

struct agent {
	struct event_base *base; /* the agent's; the engine borrows it */
	struct rlmd_engine *engine;
	const char *question;
	int waiting; /* for tools */
	bool failed;
};

struct call { /* of a tool */
	struct agent *agent;
	const char *path;
	struct rlmd_context *context;
};

/* The observation that your agent would give its model next. */
static void observe(struct call *call, const char *tool, struct rlmd_text text)
{
	printf("%s %s: %.*s\n", tool, call->path, (int)text.size, text.bytes);
	rlmd_context_unref(call->context);
	call->agent->waiting--;
	free(call);
}

static void fail(struct call *call, const char *tool, const struct rlmd_error *err)
{
	call->agent->failed = true;
	observe(call, tool, rlmd_text_of(err->text));
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	struct call *call = owner;

	if (rlmd_result_error(result))
		fail(call, "analyse", rlmd_result_error(result));
	else
		observe(call, "analyse", rlmd_result_output(result));
	rlmd_job_free(job);
}

static void analyse(struct call *call)
{
	struct rlmd_hooks hooks = {.size = sizeof hooks, .end = on_end, .owner = call};
	struct rlmd_job_options options = {
		.size = sizeof options, .context = call->context, .hooks = &hooks};
	struct rlmd_error err;

	options.task = rlmd_text_of(call->agent->question);
	if (!rlmd_job_start(call->agent->engine, &options, &err))
		fail(call, "analyse", &err);
}

/* The file is there: which tool is it for? This is where your agent asks its model. */
static void decide(void *owner, struct rlmd_context *context, const struct rlmd_error *err)
{
	struct rlmd_context_input input = {.size = sizeof input};
	struct call *call = owner;

	call->context = context;
	if (!context)
		fail(call, "read", err);
	else if (rlmd_context_get_input(context, 0, &input) && input.characters <= SHORT)
		observe(call, "read", input.content);
	else
		analyse(call);
}

static void open_file(struct agent *agent, const char *path)
{
	struct call *call = calloc(1, sizeof *call);
	struct rlmd_error err;

	if (!call)
		abort();
	*call = (struct call){.agent = agent, .path = path};
	agent->waiting++;
	if (!rlmd_context_load_start(agent->base, &path, 1, NULL, decide, call, &err))
		fail(call, "read", &err);
}

int main(int argc, char **argv)
{
	struct agent agent = {.base = event_base_new(), .question = argc > 1 ? argv[1] : ""};
	struct rlmd_engine_options options = {.size = sizeof options, .base = agent.base};
	struct rlmd_provider_options of_model = {.size = sizeof of_model, .kind = "openai"};
	struct rlmd_error err = {0};
	struct rlmd_provider *provider = rlmd_provider_new(&of_model, &err);

	agent.engine = rlmd_engine_new(&options, &err);
	if (!agent.engine || !provider ||
	    !rlmd_engine_add_provider(agent.engine, NULL, provider, &err))
		fprintf(stderr, "agent: %s\n", err.text);
	for (int i = 2; !err.kind && i < argc; i++)
		open_file(&agent, argv[i]);
	while (agent.waiting)
		event_base_loop(agent.base, EVLOOP_ONCE); /* or whatever runs your loop */
	rlmd_engine_free(agent.engine);
	rlmd_provider_unref(provider);
	event_base_free(agent.base);
	return err.kind ? rlmd_error_exit_status(err.kind) : agent.failed;
}
