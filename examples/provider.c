/*
 * examples/provider.c - a provider of one's own: whatever can answer a conversation, later.
 *
 *     cc provider.c $(pkg-config --cflags --libs rlmd libevent_core) -o provider
 *     ./provider FILE
 *
 * A rule stands here in the place of a model: it has the lines counted, then says what it was told.
 */
#include <event2/event.h>
#include <rlmd/context.h>
#include <rlmd/engine.h>
#include <rlmd/job.h>
#include <rlmd/provider.h>
#include <stdio.h>
#include <stdlib.h>

struct brain {
	struct rlmd_provider *provider;
	struct event *ready; /* when an answer is: as a thread or a connection would tell */
	uint64_t request; /* that waits for it; 0: none. A job asks for one turn after the other */
	bool counted;
};

static void answer(evutil_socket_t fd, short what, void *owner)
{
	struct brain *brain = owner;
	struct rlmd_model_answer end = {.size = sizeof end};
	uint64_t request = brain->request;

	(void)fd;
	(void)what;
	brain->request = 0;
	if (brain->counted) {
		end.text = rlmd_text_of("FINAL_VAR(lines)");
	} else {
		rlmd_provider_delta(brain->provider, request, rlmd_text_of("I count.\n"));
		end.text = rlmd_text_of("```python\nlines = len(context.splitlines())\n```");
	}
	brain->counted = true;
	rlmd_provider_answer(brain->provider, request, &end);
}

/* The messages are lent until the answer. This model does not look at them. */
static void ask(void *owner, const struct rlmd_model_request *request)
{
	static const struct timeval soon = {.tv_usec = 1000};
	struct rlmd_model_failure failure = {.size = sizeof failure,
					     .kind = RLMD_ERROR_OVERLOADED, /* is tried again */
					     .message = "one question at a time"};
	struct brain *brain = owner;

	if (brain->request) {
		rlmd_provider_fail(brain->provider, request->id, &failure);
		return;
	}
	brain->request = request->id;
	event_add(brain->ready, &soon);
}

static void cancel(void *owner, uint64_t request)
{
	struct brain *brain = owner;

	if (request == brain->request) {
		brain->request = 0;
		event_del(brain->ready);
	}
}

static bool count_lines(struct rlmd_engine *engine, const char *path, struct rlmd_error *err)
{
	struct rlmd_context *context = rlmd_context_load(&path, 1, NULL, err);
	struct rlmd_job_options options = {.size = sizeof options, .context = context};
	struct rlmd_job *job = NULL;

	options.task = rlmd_text_of("How many lines are there?");
	if (context)
		job = rlmd_job_start(engine, &options, err);
	if (job && rlmd_engine_wait(engine, job, err)) {
		struct rlmd_text output = rlmd_result_output(rlmd_job_result(job));

		if (rlmd_result_error(rlmd_job_result(job)))
			*err = *rlmd_result_error(rlmd_job_result(job));
		printf("%.*s\n", (int)output.size, output.bytes);
	}
	rlmd_job_free(job); /* nobody is asked any more */
	rlmd_context_unref(context);
	return !err->kind;
}

int main(int argc, char **argv)
{
	struct brain brain = {0};
	struct rlmd_provider_options options = {.size = sizeof options,
						.name = "rules",
						.model = "counting",
						.ask = ask,
						.cancel = cancel,
						.owner = &brain,
						.costs_nothing = true};
	struct rlmd_error err = {0};
	struct rlmd_engine *engine = rlmd_engine_new(NULL, &err);

	if (argc != 2 || !engine) {
		fprintf(stderr, "%s\n", err.kind ? err.text : "usage: provider FILE");
		rlmd_engine_free(engine);
		return 2;
	}
	brain.ready = event_new(rlmd_engine_base(engine), -1, 0, answer, &brain);
	brain.provider = rlmd_provider_new(&options, &err);
	if (!brain.provider || !rlmd_engine_add_provider(engine, NULL, brain.provider, &err) ||
	    !count_lines(engine, argv[1], &err))
		fprintf(stderr, "provider: %s\n", err.text);
	event_free(brain.ready); /* before the loop that it stands on */
	rlmd_engine_free(engine);
	rlmd_provider_unref(brain.provider);
	return rlmd_error_exit_status(err.kind);
}
