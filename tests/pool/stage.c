#include "pool/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "fake/clock.h"

void stage_init(struct stage *stage)
{
	fake_clock_speed(1);
	stage->base = event_base_new();
	stage->sandbox = fake_sandbox_new(stage->base);
}

void stage_done(struct stage *stage)
{
	assert_int_equal(fake_sandbox_living(stage->sandbox), 0);
	sandbox_free(stage->sandbox);
	event_base_free(stage->base);
}

static void note(char out[static 64], struct rlmd_text text)
{
	snprintf(out, 64, "%.*s", (int)(text.size < 63 ? text.size : 63),
		 text.bytes ? text.bytes : "");
}

static void note_block(struct actor *actor, const struct worker_block *block)
{
	note(actor->printed, block->stdout_text);
	note(actor->problem, block->error);
	note(actor->answer, block->answer);
	actor->final = block->final;
	actor->failed = block->failed;
	actor->interrupted = block->interrupted;
	actor->duration_ms = block->duration_ms;
}

static void on_event(void *owner, const struct worker_event *event)
{
	struct actor *actor = owner;

	assert_int_equal(actor->heard[WORKER_GONE], 0);
	actor->heard[event->kind]++;
	actor->events++;
	switch (event->kind) {
	case WORKER_READY:
		break;
	case WORKER_CALL:
		if (++actor->unanswered > actor->unanswered_max)
			actor->unanswered_max = actor->unanswered;
		if (actor->on_call)
			actor->on_call(actor, event->call);
		break;
	case WORKER_DONE:
		note_block(actor, event->block);
		break;
	case WORKER_VALUE:
		actor->found = event->found;
		note(actor->value, event->value);
		note(actor->variables, event->variables);
		break;
	case WORKER_GONE:
		actor->error = *event->error;
		actor->exit = event->exit;
		break;
	}
	if (actor->events == actor->free_at) {
		worker_free(actor->worker);
		actor->worker = NULL;
	}
}

void actor_start(struct actor *actor, struct stage *stage, fake_script_fn *script,
		 const struct worker_options *options)
{
	static const char *const names[] = {"lookup", NULL};
	static const struct worker_options nothing = {.max_output = 50000, .function_names = names};

	memset(actor, 0, sizeof *actor);
	actor->stage = stage;
	actor->timeout_ms = 1000000;
	fake_sandbox_script(stage->sandbox, script);
	actor->worker = worker_start(stage->base, stage->sandbox, options ? options : &nothing,
				     on_event, actor);
	assert_int_equal(actor->events, 0);
}

void actor_done(struct actor *actor)
{
	worker_free(actor->worker);
	actor->worker = NULL;
}

static void on_too_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	*(bool *)arg = true;
}

void actor_await(struct actor *actor, enum worker_event_kind kind, int times)
{
	bool late = false;
	struct event *limit = evtimer_new(actor->stage->base, on_too_late, &late);

	event_add(limit, &(struct timeval){.tv_sec = 600} /* far beyond what anything takes */);
	while (actor->heard[kind] < times && !actor->heard[WORKER_GONE] && !late)
		event_base_loop(actor->stage->base, EVLOOP_ONCE);
	event_free(limit);
	if (late)
		fail_msg("event %d did not come", (int)kind);
	if (actor->heard[kind] < times)
		fail_msg("the worker is gone: %s", actor->error.text);
}

void actor_exec(struct actor *actor)
{
	worker_exec(actor->worker, 1, text_of("code"), actor->timeout_ms);
}

void answer_all(struct actor *actor, const struct worker_call *call)
{
	struct worker_result *results = xcalloc(call->count + 1, sizeof *results);
	size_t count = call->kind == WORKER_BUDGET ? 1 : call->count;

	for (size_t i = 0; i < count; i++)
		results[i].value = call->count ? call->texts[i] : text_of("{}");
	actor->unanswered--;
	worker_reply(actor->worker, call->id, results, count);
	free(results);
}
