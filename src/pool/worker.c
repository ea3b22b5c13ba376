/*
 * A worker's life: a process is asked for, finds in its pipe what its inputs are
 * (`start`), says `ready`, then `started`, and then runs blocks until it dies:
 *
 *   STARTING --ready--> LOADING --started--> IDLE --exec--> BUSY  --done---> IDLE
 *                                                 --get---> ASKED --value--> IDLE
 *
 * It is gone when two things are known, in whichever order they come: the
 * process is over, and everything that it said has been read. Until then the
 * owner may call what it likes; it is lost like the worker.
 */
#include "pool/worker.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/timer.h"
#include "pool/boot.h"
#include "pool/exit_report.h"
#include "pool/open_calls.h"
#include "pool/translate.h"
#include "wire/channel.h"
#include "wire/limit.h"
#include "wire/message.h"

enum {
	LOOK_MS = 1000,   /* between two looks at the processor time of a block */
	AGAIN_MS = 100,   /* between two signals of an interrupt */
	GRACE_MS = 1000,  /* between the interrupt and the kill */
	LINGER_MS = 1000, /* between end of file and exit, either way round */
	DEATH_MS = 10000, /* between the kill and the exit */
};

/* The purpose of the timer. */
enum waiting {
	WAITING_START, /* for `started` */
	WAITING_BLOCK, /* for the end of a block's own time, or the next look at it */
	WAITING_GRACE, /* for the interrupt to help */
	WAITING_END,   /* for end of file after the exit, or the exit after it */
	WAITING_DEATH, /* for the exit of one that we killed */
};

/*
 * A block's own time. It runs only now and then. While it stands still the processor time of the
 * process counts in its place, for a block may compute in one thread and wait in another, or be
 * over and leave threads behind; that is added when it is looked at. Zero stands still at zero. A
 * process may be NULL: then nothing is known of it.
 */
struct block_time {
	int64_t spent_us; /* up to `since_us` */
	int64_t since_us; /* runs since then; 0: stands still */
	int64_t cpu_ms;   /* of the process when it was looked at last; 0: not known */
};

struct worker {
	struct boot *boot;       /* owned, until it answered */
	struct process *process; /* owned */
	struct channel *channel; /* owned, from `boot` until the stream is over */
	struct frame *start;     /* owned, until there is a channel */
	struct timer *timer;     /* owned */
	enum waiting waiting;
	int64_t start_ms;

	enum worker_state state;
	enum message_type arriving; /* the message that was let in */
	int64_t max_output;
	const char *const *functions; /* lent: the names of those that it may call; or NULL */
	bool exited;                  /* `exit` is known, or there never was a process */
	struct process_exit exit;
	struct rlmd_error reason; /* why we ended it ourselves; the first counts */
	bool lingered;            /* its pipe was closed long before it was over */
	enum worker_exit kind;    /* of its end */

	int64_t block;          /* its number */
	int64_t limit_ms;       /* own time of it, or of what was asked since; 0: it was interrupted
				   before that was over */
	int64_t remains_ms;     /* processor time of what it left running: as much as one had */
	struct block_time time; /* stands still while a call is unanswered */
	bool interrupted;
	int64_t grace_ms; /* until it is killed, once it is interrupted */
	struct open_calls unanswered;
	struct log log; /* its run's, with its pid */

	worker_event_fn *fn;
	void *owner; /* lent */
};

static bool block_time_runs(const struct block_time *watch)
{
	return watch->since_us;
}

static int64_t block_time_ms(const struct block_time *watch)
{
	return watch->spent_us / 1000;
}

static int64_t cpu_ms(const struct process *process)
{
	int64_t ms = process ? process_cpu_ms(process) : 0;

	return ms > 0 ? ms : 0;
}

static void block_time_look(struct block_time *watch, const struct process *process)
{
	int64_t now = cpu_ms(process);

	if (watch->cpu_ms && now > watch->cpu_ms)
		watch->spent_us += (now - watch->cpu_ms) * 1000;
	watch->cpu_ms = now;
}

static void block_time_go(struct block_time *watch, const struct process *process)
{
	if (watch->since_us)
		return;
	if (watch->cpu_ms) /* it stood still before */
		block_time_look(watch, process);
	watch->since_us = clock_us();
}

static void block_time_stop(struct block_time *watch, const struct process *process)
{
	if (!watch->since_us)
		return;
	watch->spent_us += clock_us() - watch->since_us;
	watch->since_us = 0;
	watch->cpu_ms = cpu_ms(process);
}

static int64_t block_time_end(struct block_time *watch, const struct process *process)
{
	bool ran = block_time_runs(watch);
	int64_t ms;

	block_time_stop(watch, process);
	ms = block_time_ms(watch);
	*watch = (struct block_time){.cpu_ms = ran ? watch->cpu_ms : cpu_ms(process)};
	return ms;
}

static void wait_for(struct worker *worker, enum waiting waiting, int64_t ms)
{
	worker->waiting = waiting;
	timer_start(worker->timer, ms);
}

static enum exit_report_age age(const struct worker *worker)
{
	return worker->state == WORKER_STARTING  ? EXIT_REPORT_UNCONFINED
	       : worker->state == WORKER_LOADING ? EXIT_REPORT_LOADING
						 : EXIT_REPORT_GROWN;
}

/* Tells the owner; the last statement of whoever calls it. */
static void bury(struct worker *worker)
{
	struct rlmd_error err = worker->reason;
	struct worker_event event = {.kind = WORKER_GONE, .error = &err, .exit = worker->kind};

	timer_stop(worker->timer);
	channel_free(take_pointer(&worker->channel)); /* it has nobody left to tell */
	if (err.kind == RLMD_ERROR_NONE || (worker->lingered && *worker->exit.reason))
		exit_report_write(&worker->exit, age(worker), &err);
	if (worker->state == WORKER_STARTING && err.kind == RLMD_ERROR_WORKER)
		err.kind = RLMD_ERROR_SANDBOX;
	err.stop = RLMD_STOP_SANDBOX_ERROR; /* of a run that had no other chance */
	exit_report_log(&worker->log, &worker->exit, worker->block, &err);
	worker->fn(worker->owner, &event);
}

/* Ends it for a reason of ours; the last statement likewise. */
static void condemn(struct worker *worker, const struct rlmd_error *reason)
{
	if (worker->reason.kind == RLMD_ERROR_NONE)
		worker->reason = *reason;
	channel_free(take_pointer(&worker->channel));
	timer_stop(worker->timer);
	if (worker->boot) {
		boot_cancel(take_pointer(&worker->boot));
		worker->exited = true;
	}
	if (worker->exited) {
		bury(worker);
		return;
	}
	process_kill(worker->process);
	wait_for(worker, WAITING_DEATH, DEATH_MS);
}

static void refuse(struct worker *worker, const struct rlmd_error *err)
{
	struct rlmd_error reason;

	exit_report_of_refused(err, &reason);
	condemn(worker, &reason);
}

static void violation(struct worker *worker, const char *what)
{
	struct rlmd_error err;

	error_set(&err, RLMD_ERROR_WORKER, "%s", what);
	refuse(worker, &err);
}

/* Where the stream just ended, the exit will tell why. */
static void on_over(void *owner, const struct rlmd_error *err)
{
	struct worker *worker = owner;

	if (!channel_ended(worker->channel) && !worker->exited) {
		refuse(worker, err);
		return;
	}
	channel_free(take_pointer(&worker->channel));
	if (worker->exited)
		bury(worker);
	else
		wait_for(worker, WAITING_END, LINGER_MS);
}

/* How much may wait for us: who asks for more is served, but later; who is dead asks no more. */
static void regulate(struct worker *worker)
{
	size_t room = worker->exited ? ATTACHED_MAX : open_calls_room(&worker->unanswered);

	if (!worker->channel)
		return;
	channel_allow(worker->channel, room);
	channel_pause(worker->channel, !worker->exited && open_calls_full(&worker->unanswered));
}

/* Its last messages may still be in the pipe, a `done` perhaps. */
static void on_exit_of_process(void *owner, const struct process_exit *exit)
{
	struct worker *worker = owner;

	worker->exit = *exit;
	worker->exited = true;
	if (worker->channel) {
		regulate(worker);
		wait_for(worker, WAITING_END, LINGER_MS);
	} else {
		bury(worker);
	}
}

/* Threads that a block leaves behind may compute as long as one, until the next begins. Returns the
 * time that was its own. */
static int64_t watch_end(struct worker *worker)
{
	int64_t ms = block_time_end(&worker->time, worker->process);

	worker->state = WORKER_IDLE;
	if (!worker->exited)
		wait_for(worker, WAITING_BLOCK, LOOK_MS);
	return ms;
}

static void watch_stop(struct worker *worker)
{
	if (!block_time_runs(&worker->time))
		return;
	block_time_stop(&worker->time, worker->process);
	if (!worker->interrupted && !worker->exited)
		wait_for(worker, WAITING_BLOCK, LOOK_MS);
}

static void watch_go(struct worker *worker)
{
	bool computes = worker->state == WORKER_BUSY || worker->state == WORKER_ASKED;

	if (!computes || worker->unanswered.count || block_time_runs(&worker->time))
		return;
	block_time_go(&worker->time, worker->process);
	if (!worker->interrupted && !worker->exited && worker->channel)
		wait_for(worker, WAITING_BLOCK, worker->limit_ms - block_time_ms(&worker->time));
}

/*
 * Signals until the block ends or is killed: a worker that has not yet read its block takes no
 * notice of a signal, and one that was interrupted takes none of another.
 */
static void interrupt(struct worker *worker)
{
	worker->interrupted = true;
	worker->grace_ms -= AGAIN_MS;
	if (worker->process)
		process_interrupt(worker->process);
	wait_for(worker, WAITING_GRACE, AGAIN_MS);
}

/* Where a call is open, or the block is over, what computes must not run for ever either. */
static void end_block(struct worker *worker)
{
	int64_t limit = worker->state == WORKER_IDLE ? worker->remains_ms : worker->limit_ms;
	bool waits = !block_time_runs(&worker->time);
	struct rlmd_error err;

	if (waits)
		block_time_look(&worker->time, worker->process);
	if (waits && block_time_ms(&worker->time) < limit) {
		wait_for(worker, WAITING_BLOCK, LOOK_MS);
		return;
	}
	if (worker->state == WORKER_IDLE) { /* nobody is there to be interrupted */
		exit_report_of_remains(worker->remains_ms, &err);
		condemn(worker, &err);
		return;
	}
	interrupt(worker);
}

void worker_interrupt(struct worker *worker)
{
	bool computes = worker->state == WORKER_BUSY || worker->state == WORKER_ASKED;

	if (!computes || worker->interrupted || worker->exited || !worker->channel)
		return;
	worker->limit_ms = 0;
	interrupt(worker);
}

static void out_of_time(struct worker *worker, int64_t ms)
{
	struct rlmd_error err;

	exit_report_of_late(age(worker), ms, &err);
	if (age(worker) == EXIT_REPORT_GROWN && !worker->reason.kind)
		worker->kind = WORKER_EXIT_LATE;
	condemn(worker, &err);
}

/* No urgent timer: what the worker has said by then is read first. */
static void on_timer(void *arg)
{
	struct worker *worker = arg;

	switch (worker->waiting) {
	case WAITING_START:
		out_of_time(worker, worker->start_ms);
		return;
	case WAITING_BLOCK:
		end_block(worker);
		return;
	case WAITING_GRACE:
		if (worker->grace_ms > 0)
			interrupt(worker);
		else
			out_of_time(worker, worker->limit_ms);
		return;
	case WAITING_END:
		if (worker->exited) {
			bury(worker);
			return;
		}
		worker->lingered = true;
		violation(worker, "it closed its pipe and lived on");
		return;
	case WAITING_DEATH: /* the kernel is in no hurry, or does not let us kill it */
		process_free(take_pointer(&worker->process));
		worker->exited = true;
		bury(worker);
		return;
	}
}

static void on_started(struct worker *worker, const struct packet *packet)
{
	const struct packet_value *error = packet_field(packet, "error");
	struct rlmd_text text = text_clip(packet_text(packet, error, NULL), 400);
	struct worker_event event = {.kind = WORKER_READY};
	struct rlmd_error err;

	if (error->kind != JSON_VIEW_NULL) {
		if (packet_field(packet, "no_memory")->kind == JSON_VIEW_TRUE)
			worker->kind = WORKER_EXIT_NO_MEMORY;
		error_set(&err, RLMD_ERROR_INPUT, "the inputs could not be loaded: %.*s",
			  (int)text.size, text.bytes);
		condemn(worker, &err);
		return;
	}
	if (!worker->exited)
		timer_stop(worker->timer);
	worker->state = WORKER_IDLE;
	worker->fn(worker->owner, &event);
}

static void on_done(struct worker *worker, const struct packet *packet)
{
	struct worker_block block = {0};
	struct worker_event event = {.kind = WORKER_DONE, .block = &block};
	struct rlmd_error err;

	if (!translate_block(packet, worker->block, &block, &err)) {
		refuse(worker, &err);
		return;
	}
	block.duration_ms = watch_end(worker);
	block.interrupted = worker->interrupted;
	worker->fn(worker->owner, &event);
}

static void on_value(struct worker *worker, const struct packet *packet)
{
	struct worker_event event = {.kind = WORKER_VALUE};
	struct rlmd_error err;

	if (!translate_value(packet, &event, &err)) {
		refuse(worker, &err);
		return;
	}
	watch_end(worker);
	worker->fn(worker->owner, &event);
}

static void on_call(struct worker *worker, const struct packet *packet, enum message_type type)
{
	struct worker_event event = {.kind = WORKER_CALL};
	struct translated_call call;
	struct rlmd_error err;

	if (worker->exited)
		return; /* nobody is left to be answered */
	if (!translate_call(packet, type, worker->functions, &call, &err)) {
		refuse(worker, &err);
		return;
	}
	if (open_calls_add(&worker->unanswered, call.request.id, call.weight)) {
		event.call = &call.request;
		watch_stop(worker);
		regulate(worker);
		worker->fn(worker->owner, &event);
	} else {
		violation(worker, "a call with the number of an unanswered one");
	}
	translate_call_done(&call);
}

static bool on_announce(void *owner, const struct packet *packet, struct rlmd_error *err)
{
	struct worker *worker = owner;

	return message_check(packet, MESSAGE_FROM_WORKER, worker->state, &worker->arriving, err) &&
	       limit_check(packet, worker->arriving, worker->max_output, err);
}

static void on_packet(void *owner, const struct packet *packet)
{
	struct worker *worker = owner;

	switch (worker->arriving) {
	case MESSAGE_READY:
		worker->state = WORKER_LOADING;
		return;
	case MESSAGE_STARTED:
		on_started(worker, packet);
		return;
	case MESSAGE_DONE:
		on_done(worker, packet);
		return;
	case MESSAGE_VALUE:
		on_value(worker, packet);
		return;
	case MESSAGE_LLM_QUERY:
	case MESSAGE_RLM_QUERY:
	case MESSAGE_RUN_PLAN:
	case MESSAGE_BUDGET:
	case MESSAGE_FUNCTION:
		on_call(worker, packet, worker->arriving);
		return;
	case MESSAGE_START:
	case MESSAGE_EXEC:
	case MESSAGE_REPLY:
	case MESSAGE_GET:
	case MESSAGE_EXIT:
	case MESSAGE_TYPES:
		break; /* ours to say; refused above */
	}
}

/*
 * `start` lies in its pipe before it is there to read it: so neither side waits for the other
 * once more. It says no more than the descriptors that the process was forked with hold.
 */
static void on_spawn(void *owner, const struct spawned *spawned, const struct rlmd_error *err)
{
	struct worker *worker = owner;

	worker->boot = NULL;
	if (!spawned) {
		worker->exited = true;
		condemn(worker, err);
		return;
	}
	worker->channel = channel_new(timer_base(worker->timer), spawned->from, spawned->to,
				      on_packet, on_over, worker);
	channel_on_announce(worker->channel, on_announce);
	worker->process = spawned->process;
	log_add_number(&worker->log, "pid", process_pid(worker->process));
	log_write(&worker->log, LOG_WORKER_STARTED, NULL, "a worker was started");
	process_on_exit(worker->process, on_exit_of_process, worker);
	channel_send(worker->channel, take_pointer(&worker->start));
}

struct worker *worker_start(struct event_base *base, struct rlmd_sandbox *sandbox,
			    const struct worker_options *options, worker_event_fn *fn, void *owner)
{
	struct worker *worker = xcalloc(1, sizeof *worker);
	struct worker_input inputs[WORKER_INPUTS_MAX];
	struct worker_options chosen = *options;

	*worker = (struct worker){.fn = fn, .owner = owner, .log = log_child(options->log)};
	worker->timer = timer_new(base, on_timer, worker);
	boot_choose(sandbox, options, inputs);
	chosen.inputs = inputs;
	worker->start = translate_start(&chosen);
	worker->max_output = options->max_output;
	worker->functions = options->function_names;
	worker->start_ms = translate_start_ms(options);
	worker->boot = boot_start(base, sandbox, &chosen, on_spawn, worker);
	wait_for(worker, WAITING_START, worker->start_ms);
	return worker;
}

void worker_free(struct worker *worker)
{
	if (!worker)
		return;
	boot_cancel(worker->boot);
	process_free(worker->process);
	channel_free(worker->channel);
	frame_free(worker->start);
	timer_free(worker->timer);
	free(worker);
}

static void tell(struct worker *worker, struct frame *frame)
{
	if (worker->channel)
		channel_send(worker->channel, frame);
	else
		frame_free(frame);
}

/* Sends what makes it run, and lets its time run. */
static void begin(struct worker *worker, struct frame *frame, enum worker_state state,
		  int64_t limit_ms)
{
	assert(worker->state == WORKER_IDLE);
	tell(worker, frame);
	worker->state = state;
	worker->limit_ms = limit_ms;
	if (limit_ms > worker->remains_ms)
		worker->remains_ms = limit_ms;
	worker->time = (struct block_time){0};
	worker->interrupted = false;
	worker->grace_ms = GRACE_MS;
	watch_go(worker);
	if (!timer_waits(worker->timer)) /* a call is open from before */
		wait_for(worker, WAITING_BLOCK, LOOK_MS);
}

void worker_exec(struct worker *worker, int64_t block, struct rlmd_text code, int64_t timeout_ms)
{
	worker->block = block;
	begin(worker, translate_exec(block, code), WORKER_BUSY, timeout_ms);
}

void worker_get(struct worker *worker, const char *name, int64_t timeout_ms)
{
	begin(worker, translate_get(name), WORKER_ASKED, timeout_ms);
}

void worker_reply(struct worker *worker, int64_t id, const struct worker_result *results,
		  size_t count)
{
	bool asked = open_calls_remove(&worker->unanswered, id);

	assert(asked);
	tell(worker, translate_reply(id, results, count));
	watch_go(worker);
	regulate(worker);
}
