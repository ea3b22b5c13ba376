/*
 * Whatever a worker says, when its process ends, and what its owner asks for, in any
 * order: the owner hears only what the states of docs/protocol.md allow, hears of the
 * end once and of nothing after it, and nothing leaks.
 *
 * The input is a list of steps (enum step), each with the bytes that it needs. The
 * process is no process: two pipes, and an exit that comes when a step says so, or
 * when it is killed.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "pool/open_calls.h"
#include "pool/worker.h"
#include "sandbox/child.h"
#include "wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum step {
	STEP_RAW,   /* so many bytes */
	STEP_FRAME, /* the same, as the JSON of a frame */
	STEP_READY,
	STEP_STARTED,
	STEP_NOT_STARTED,
	STEP_DONE,
	STEP_FINAL,
	STEP_VALUE,
	STEP_BUDGET, /* number */
	STEP_QUERY,  /* number, prompts */
	STEP_ATTACH, /* number, kilobytes of a prompt */
	STEP_TASKS,  /* number, tasks and contexts */
	STEP_CLOSE,  /* its end of the pipe */
	STEP_EXIT,   /* status */
	STEP_EXEC,   /* the owner's: short or long */
	STEP_GET,    /* likewise */
	STEP_REPLY,  /* to which call */
	STEP_LISTEN, /* reads what it was sent */
	STEP_LOOP,   /* the event loop turns */
	STEP_FREE,
	STEPS,
};

/* Stand-ins for the sandbox and its process. */
struct rlmd_sandbox {
	struct event_base *base;
	int in, out;             /* the worker's ends; -1: closed */
	int from, to;            /* ours, until the callback */
	struct evbuffer *unsent; /* what it would say, were there room */
	struct spawn *spawn;
	struct process *process;
};

struct spawn {
	struct rlmd_sandbox *sandbox;
	struct event *event;
	sandbox_spawn_fn *fn;
	void *owner;
};

struct process {
	struct rlmd_sandbox *sandbox;
	struct event *event;
	struct process_exit exit;
	bool over, told;
	process_exit_fn *fn;
	void *owner;
};

/* The owner, and what it may hear. */
struct owner {
	struct worker *worker;
	struct rlmd_sandbox sandbox;
	enum worker_state state;
	int64_t ids[OPEN_CALLS_MAX];
	size_t counts[OPEN_CALLS_MAX], unanswered;
	bool gone;
};

struct input {
	const uint8_t *data;
	size_t size;
};

/* A second of the worker's is a millisecond of ours. */
int64_t clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000) * 1000;
}

int64_t clock_ms(void)
{
	return clock_us() / 1000;
}

struct timeval clock_timeval(int64_t ms)
{
	int64_t us = ms < 0 ? 0 : ms;

	return (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
}

void clock_format(int64_t ms, char out[static 16])
{
	snprintf(out, 16, "%d ms", (int)(ms % 1000000));
}

/* --- the sandbox ------------------------------------------------------------------ */

static void hang_up(struct rlmd_sandbox *sandbox)
{
	if (sandbox->out >= 0)
		close(sandbox->out);
	sandbox->out = -1;
}

static void on_spawned(evutil_socket_t fd, short what, void *arg)
{
	struct spawn *spawn = arg;
	struct rlmd_sandbox *sandbox = spawn->sandbox;
	struct process *process = xcalloc(1, sizeof *process);

	(void)fd;
	(void)what;
	process->sandbox = sandbox;
	sandbox->process = process;
	sandbox->spawn = NULL;
	event_free(spawn->event);
	spawn->fn(spawn->owner, &(struct spawned){process, sandbox->from, sandbox->to}, NULL);
	free(spawn);
}

bool sandbox_maps_texts(const struct rlmd_sandbox *sandbox)
{
	(void)sandbox;
	return false;
}

struct spawn *sandbox_spawn(struct rlmd_sandbox *sandbox, const int *files, size_t file_count,
			    size_t extra_memory, sandbox_spawn_fn *fn, void *owner)
{
	struct spawn *spawn = xcalloc(1, sizeof *spawn);
	int ours[2], theirs[2];
	struct rlmd_error err;

	(void)files;
	(void)file_count;
	(void)extra_memory;
	if (!child_open_pipes(ours, theirs, &err))
		abort();
	sandbox->from = ours[0];
	sandbox->to = ours[1];
	sandbox->in = theirs[0];
	sandbox->out = theirs[1];
	fcntl(sandbox->in, F_SETFL, O_NONBLOCK);
	fcntl(sandbox->out, F_SETFL, O_NONBLOCK);
	*spawn = (struct spawn){.sandbox = sandbox, .fn = fn, .owner = owner};
	spawn->event = evtimer_new(sandbox->base, on_spawned, spawn);
	event_active(spawn->event, EV_TIMEOUT, 0);
	sandbox->spawn = spawn;
	return spawn;
}

void spawn_cancel(struct spawn *spawn)
{
	if (!spawn)
		return;
	close(spawn->sandbox->from);
	close(spawn->sandbox->to);
	spawn->sandbox->spawn = NULL;
	event_free(spawn->event);
	free(spawn);
}

static void on_exited(evutil_socket_t fd, short what, void *arg)
{
	struct process *process = arg;

	(void)fd;
	(void)what;
	assert(process->over && !process->told);
	process->told = true;
	process->fn(process->owner, &process->exit);
}

static void process_end(struct process *process, bool signaled, int status)
{
	if (process->over)
		return;
	process->over = true;
	process->exit = (struct process_exit){.signaled = signaled, .status = status};
	if (process->event)
		event_active(process->event, EV_TIMEOUT, 0);
}

void process_on_exit(struct process *process, process_exit_fn *fn, void *owner)
{
	process->fn = fn;
	process->owner = owner;
	process->event = evtimer_new(process->sandbox->base, on_exited, process);
	if (process->over)
		event_active(process->event, EV_TIMEOUT, 0);
}

pid_t process_pid(const struct process *process)
{
	assert(process);
	return 1;
}

void process_interrupt(struct process *process)
{
	assert(process);
}

void process_kill(struct process *process)
{
	hang_up(process->sandbox);
	process_end(process, true, SIGKILL);
}

int64_t process_cpu_ms(const struct process *process)
{
	assert(process);
	return -1;
}

void process_free(struct process *process)
{
	if (!process)
		return;
	process->sandbox->process = NULL;
	hang_up(process->sandbox);
	if (process->event)
		event_free(process->event);
	free(process);
}

const char *process_exit_wall(const struct process_exit *exit)
{
	return !exit->signaled && exit->status >= 100 ? "some wall" : NULL;
}

/* --- the owner --------------------------------------------------------------------- */

static void note_call(struct owner *owner, const struct worker_call *call)
{
	assert(owner->state != WORKER_STARTING);
	assert(owner->unanswered < OPEN_CALLS_MAX);
	for (size_t i = 0; i < owner->unanswered; i++)
		assert(owner->ids[i] != call->id);
	for (size_t i = 0; i < call->count; i++)
		assert(call->texts[i].bytes || !call->texts[i].size);
	owner->ids[owner->unanswered] = call->id;
	owner->counts[owner->unanswered++] = call->kind == WORKER_BUDGET ? 1 : call->count;
}

static void on_event(void *arg, const struct worker_event *event)
{
	struct owner *owner = arg;

	assert(!owner->gone);
	switch (event->kind) {
	case WORKER_READY:
		assert(owner->state == WORKER_STARTING);
		owner->state = WORKER_IDLE;
		break;
	case WORKER_CALL:
		note_call(owner, event->call);
		break;
	case WORKER_DONE:
		assert(owner->state == WORKER_BUSY);
		assert(!event->block->final || event->block->answer.bytes);
		owner->state = WORKER_IDLE;
		break;
	case WORKER_VALUE:
		assert(owner->state == WORKER_ASKED);
		owner->state = WORKER_IDLE;
		break;
	case WORKER_GONE:
		assert(event->error->kind != RLMD_ERROR_NONE && event->error->text[0]);
		owner->gone = true;
		break;
	}
}

static void reply(struct owner *owner, size_t which)
{
	struct worker_result *results;
	size_t count;

	if (!owner->unanswered)
		return;
	which %= owner->unanswered;
	count = owner->counts[which];
	results = xcalloc(count + 1, sizeof *results);
	for (size_t i = 0; i < count; i++)
		results[i] = (struct worker_result){.failed = i % 2,
						    .value = text_of("an answer"),
						    .kind = RLMD_ERROR_BUDGET,
						    .message = "none"};
	worker_reply(owner->worker, owner->ids[which], results, count);
	free(results);
	owner->unanswered--;
	owner->ids[which] = owner->ids[owner->unanswered];
	owner->counts[which] = owner->counts[owner->unanswered];
}

/* --- the worker ---------------------------------------------------------------------- */

static void flush(struct rlmd_sandbox *sandbox)
{
	if (sandbox->out >= 0 && evbuffer_get_length(sandbox->unsent))
		evbuffer_write(sandbox->unsent, sandbox->out);
}

static void listen_to(struct rlmd_sandbox *sandbox)
{
	char bytes[4096];

	while (sandbox->in >= 0 && read(sandbox->in, bytes, sizeof bytes) > 0)
		continue;
}

static void say(struct rlmd_sandbox *sandbox, const char *json, size_t size)
{
	uint32_t length = htonl((uint32_t)size);

	evbuffer_add(sandbox->unsent, &length, sizeof length);
	evbuffer_add(sandbox->unsent, json, size);
}

static void say_text(struct rlmd_sandbox *sandbox, const char *json)
{
	say(sandbox, json, strlen(json));
}

static unsigned take(struct input *input)
{
	if (!input->size)
		return 0;
	input->size--;
	return *input->data++;
}

static void say_bytes(struct rlmd_sandbox *sandbox, struct input *input, bool framed)
{
	size_t size = take(input);

	if (size > input->size)
		size = input->size;
	if (framed)
		say(sandbox, (const char *)input->data, size);
	else
		evbuffer_add(sandbox->unsent, input->data, size);
	input->data += size;
	input->size -= size;
}

/* Members of a call that ask nothing of its answers. */
#define USUAL "\"turns\":[],\"system\":null,\"max_tokens\":null,\"temperature\":null"

static void say_query(struct rlmd_sandbox *sandbox, unsigned id, unsigned prompts)
{
	char json[2048];
	size_t used = (size_t)snprintf(json, sizeof json,
				       "{\"type\":\"llm_query\",\"id\":%u," USUAL ",\"model\":null,"
				       "\"prompts\":[",
				       id);

	for (unsigned i = 0; i < prompts; i++)
		used += (size_t)snprintf(json + used, sizeof json - used, "%s\"p\"", i ? "," : "");
	snprintf(json + used, sizeof json - used, "]}");
	say_text(sandbox, json);
}

static void say_attached(struct rlmd_sandbox *sandbox, unsigned id, unsigned kilobytes)
{
	char *bytes = xcalloc(kilobytes + 1, 1000);
	char json[256];

	snprintf(json, sizeof json,
		 "{\"type\":\"llm_query\",\"id\":%u," USUAL ",\"model\":null,\"prompts\":[1,0],"
		 "\"attachments\":[%u,3]}",
		 id, kilobytes * 1000);
	say_text(sandbox, json);
	evbuffer_add(sandbox->unsent, bytes, (size_t)kilobytes * 1000);
	evbuffer_add(sandbox->unsent, "end", 3);
	free(bytes);
}

static void say_tasks(struct rlmd_sandbox *sandbox, unsigned id, unsigned how)
{
	char json[256];

	snprintf(
		json, sizeof json,
		"{\"type\":\"rlm_query\",\"id\":%u,\"tasks\":[\"a\",\"b\"],\"subsets\":[],\"contexts\":[%s],"
		"\"models\":[null,\"m\"],"
		"\"attachments\":[4]}",
		id,
		how % 3 == 0   ? "null,0"
		: how % 3 == 1 ? "\"text\",0"
			       : "0");
	say_text(sandbox, json);
	evbuffer_add(sandbox->unsent, "file", 4);
}

static void say_message(struct rlmd_sandbox *sandbox, enum step step)
{
	static const char *const messages[STEPS] = {
		[STEP_READY] =
			"{\"type\":\"ready\",\"python\":\"3.11.2\",\"layers\":[\"seccomp\"]}",
		[STEP_STARTED] = "{\"type\":\"started\",\"error\":null,\"no_memory\":false}",
		[STEP_NOT_STARTED] =
			"{\"type\":\"started\",\"error\":\"MemoryError\",\"no_memory\":true}",
		[STEP_DONE] = "{\"type\":\"done\",\"block\":1,\"stdout\":\"out\",\"stderr\":\"\","
			      "\"error\":\"E\",\"missing\":null,\"final\":null,\"answer\":null}",
		[STEP_FINAL] =
			"{\"type\":\"done\",\"block\":1,\"stdout\":\"\",\"stderr\":\"\",\"error\":null,"
			"\"missing\":null,\"final\":\"final_var\",\"answer\":\"42\"}",
		[STEP_VALUE] =
			"{\"type\":\"value\",\"value\":\"v\",\"expression\":false,\"variables\":\"x int\"}",
	};

	say_text(sandbox, messages[step]);
}

/* --- what happens -------------------------------------------------------------------- */

static void process_step(struct owner *owner, enum step step, struct input *input)
{
	struct rlmd_sandbox *sandbox = &owner->sandbox;
	unsigned number;
	char json[64];

	switch (step) {
	case STEP_RAW:
	case STEP_FRAME:
		say_bytes(sandbox, input, step == STEP_FRAME);
		return;
	case STEP_READY:
	case STEP_STARTED:
	case STEP_NOT_STARTED:
	case STEP_DONE:
	case STEP_FINAL:
	case STEP_VALUE:
		say_message(sandbox, step);
		return;
	case STEP_BUDGET:
		snprintf(json, sizeof json, "{\"type\":\"budget\",\"id\":%u}", take(input));
		say_text(sandbox, json);
		return;
	case STEP_QUERY:
		number = take(input);
		say_query(sandbox, number, take(input));
		return;
	case STEP_ATTACH:
		number = take(input);
		say_attached(sandbox, number, take(input));
		return;
	case STEP_TASKS:
		number = take(input);
		say_tasks(sandbox, number, take(input));
		return;
	case STEP_CLOSE:
		hang_up(sandbox);
		return;
	case STEP_EXIT:
		number = take(input);
		if (sandbox->process)
			process_end(sandbox->process, number & 1, (int)(number >> 1));
		return;
	case STEP_EXEC:
	case STEP_GET:
	case STEP_REPLY:
	case STEP_LISTEN:
	case STEP_LOOP:
	case STEP_FREE:
	case STEPS:
		return;
	}
}

static void owner_step(struct owner *owner, enum step step, struct input *input)
{
	int64_t ms = step == STEP_EXEC || step == STEP_GET ? take(input) & 1 ? 1 : 1000000 : 0;

	if (step == STEP_REPLY)
		reply(owner, take(input));
	if (step == STEP_LISTEN)
		listen_to(&owner->sandbox);
	if (ms && owner->state == WORKER_IDLE) {
		owner->state = step == STEP_EXEC ? WORKER_BUSY : WORKER_ASKED;
		if (step == STEP_EXEC)
			worker_exec(owner->worker, 1, text_of("code"), ms);
		else
			worker_get(owner->worker, "name", ms);
	}
}

static void play(struct owner *owner, struct input *input)
{
	while (input->size && !owner->gone) {
		enum step step = (enum step)(take(input) % STEPS);

		if (step == STEP_FREE)
			return;
		process_step(owner, step, input);
		owner_step(owner, step, input);
		flush(&owner->sandbox);
		event_base_loop(owner->sandbox.base, EVLOOP_NONBLOCK);
	}
	/* The process ends in any case, and then its owner must hear of it. */
	hang_up(&owner->sandbox);
	if (owner->sandbox.process)
		process_end(owner->sandbox.process, false, 0);
	while (!owner->gone) {
		event_base_loop(owner->sandbox.base, EVLOOP_ONCE);
		hang_up(&owner->sandbox);
		if (owner->sandbox.process)
			process_end(owner->sandbox.process, false, 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct event_base *base;
	struct worker_options options = {.max_output = 1000};
	struct owner owner = {.sandbox = {.in = -1, .out = -1}};
	struct input input = {data, size};

	signal(SIGPIPE, SIG_IGN);
	if (!base)
		base = event_base_new();
	owner.sandbox.base = base;
	owner.sandbox.unsent = evbuffer_new();
	owner.worker = worker_start(base, &owner.sandbox, &options, on_event, &owner);
	play(&owner, &input);
	worker_free(owner.worker);
	assert(!owner.sandbox.spawn && !owner.sandbox.process);
	hang_up(&owner.sandbox);
	if (owner.sandbox.in >= 0)
		close(owner.sandbox.in);
	evbuffer_free(owner.sandbox.unsent);
	return 0;
}
