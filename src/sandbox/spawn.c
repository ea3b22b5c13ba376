/*
 * From the question for a process to the process: queued, sent to the template,
 * answered. A template that dies is replaced, and asked again.
 */
#include "sandbox/sandbox_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/timer.h"
#include "sandbox/child.h"

#define GIB ((uint64_t)1 << 30)

enum {
	SENT_MAX = 8,   /* requests without an answer: bounds the descriptors in flight */
	LOSSES_MAX = 2, /* templates that a request may outlive */
	WIDEST = 4,     /* bytes of a character in a str */
};

/* In one of the sandbox's three lists. A cancelled one that was sent stays until it is answered. */
struct spawn {
	struct rlmd_sandbox *sandbox; /* lent */
	struct spawn_list *list;      /* lent: the one that it is in */
	struct launch_request request;
	int fds[LAUNCH_FDS_MAX]; /* owned: its null, in, out while it's sent; files until answered
				  */
	size_t fd_count;
	int ours[2];             /* owned: the other ends of out and in, once it is sent; or -1 */
	int losses;              /* templates that died with it */
	struct rlmd_error error; /* where it failed */

	sandbox_spawn_fn *fn; /* NULL: cancelled */
	void *owner;
	TAILQ_ENTRY(spawn) entry;
};

static void spawn_move(struct spawn *spawn, struct spawn_list *list)
{
	if (spawn->list)
		TAILQ_REMOVE(spawn->list, spawn, entry);
	spawn->list = list;
	if (list)
		TAILQ_INSERT_TAIL(list, spawn, entry);
}

static void close_all(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

static void spawn_close(struct spawn *spawn)
{
	close_all(spawn->fds, spawn->fd_count);
	close_all(spawn->ours, 2);
}

static void spawn_free(struct spawn *spawn)
{
	spawn_move(spawn, NULL);
	spawn_close(spawn);
	free(spawn);
}

/* Where no process came of it. */
static void return_uid(struct spawn *spawn)
{
	if (spawn->request.uid)
		uids_give(&spawn->sandbox->processes.uids, spawn->request.uid);
	spawn->request.uid = 0;
}

static void spawn_fail(struct spawn *spawn, const struct rlmd_error *error)
{
	return_uid(spawn);
	spawn_close(spawn);
	spawn->error = *error;
	spawn_move(spawn, &spawn->sandbox->failed);
	timer_post(spawn->sandbox->pump);
}

static void fail_all(struct spawn_list *list, const struct rlmd_error *error)
{
	struct spawn *spawn;

	while ((spawn = TAILQ_FIRST(list)))
		spawn_fail(spawn, error);
}

/* In the place of one that died. */
static bool restart_template(struct rlmd_sandbox *sandbox, struct rlmd_error *err)
{
	struct template_process *template = template_new(sandbox->base, &sandbox->config,
							 spawn_on_template, sandbox, err);

	sandbox->ready = false;
	if (template)
		sandbox_adopt(sandbox, template);
	return template;
}

/* Descriptors of one description share its flags, which is a way to talk: so each worker gets a
 * null of its own. */
static bool open_own(struct spawn *spawn, struct rlmd_error *err)
{
	spawn->fds[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (spawn->fds[0] < 0)
		return error_errno(err, RLMD_ERROR_SANDBOX, "/dev/null");
	return child_open_pipes(spawn->ours, &spawn->fds[1], err);
}

/* The request as it goes out: with pipes, and with a uid, which is in use from now on. */
static bool complete(struct rlmd_sandbox *sandbox, struct spawn *spawn, struct rlmd_error *err)
{
	uint32_t promised = layer_status_promised(sandbox->status.mode), uid = 0;

	if (spawn->ours[0] >= 0)
		return true; /* it did not fit the last time */
	if (!open_own(spawn, err))
		return false;
	if (promised & BIT(uid) && !uids_take(&sandbox->processes.uids, &uid, err))
		return false;
	spawn->request = mode_search_request(&sandbox->status, &spawn->request, uid);
	return true;
}

/* For the answer to the oldest request; they come in order. */
static void await_answer(struct rlmd_sandbox *sandbox)
{
	timer_stop(sandbox->overdue);
	if (!TAILQ_EMPTY(&sandbox->sent))
		timer_start(sandbox->overdue, sandbox->answer_ms);
}

/* While others' descriptors are in the way of ours. False: for too long. */
static bool await_room(struct rlmd_sandbox *sandbox)
{
	int64_t now = clock_ms();

	if (!sandbox->crowded_until)
		sandbox->crowded_until = now + sandbox->answer_ms;
	if (now >= sandbox->crowded_until)
		return false;
	timer_start(sandbox->pump, TEMPLATE_AGAIN_MS);
	return true;
}

static void send_queued(struct rlmd_sandbox *sandbox)
{
	struct spawn *spawn, *other;
	struct rlmd_error error;
	size_t sent = 0;

	TAILQ_FOREACH (other, &sandbox->sent, entry)
		sent++;
	while (sent < SENT_MAX && (spawn = TAILQ_FIRST(&sandbox->queued))) {
		if (!complete(sandbox, spawn, &error)) {
			spawn_fail(spawn, &error);
			continue;
		}
		switch (template_send(sandbox->template_process, &spawn->request, spawn->fds,
				      spawn->fd_count)) {
		case TEMPLATE_SENT:
			close_all(spawn->fds, LAUNCH_OWN_FDS);
			spawn_move(spawn, &sandbox->sent);
			sandbox->crowded_until = 0;
			if (!sent++)
				await_answer(sandbox);
			break;
		case TEMPLATE_FULL:
			return;
		case TEMPLATE_CROWDED:
			if (await_room(sandbox))
				return;
			template_refused(&error);
			fail_all(&sandbox->queued, &error);
			sandbox->crowded_until = 0;
			break;
		case TEMPLATE_FAILED:
			template_refused(&error);
			spawn_fail(spawn, &error);
			break;
		}
	}
}

static void deliver_failure(struct rlmd_sandbox *sandbox)
{
	struct spawn *spawn = TAILQ_FIRST(&sandbox->failed);
	sandbox_spawn_fn *fn;
	struct rlmd_error error;
	void *owner;

	if (!spawn)
		return;
	fn = spawn->fn;
	owner = spawn->owner;
	error = spawn->error;
	spawn_free(spawn);
	if (!TAILQ_EMPTY(&sandbox->failed))
		timer_post(sandbox->pump);
	if (fn)
		fn(owner, NULL, &error);
}

void spawn_pump(void *arg)
{
	struct rlmd_sandbox *sandbox = arg;
	struct rlmd_error error;

	if (!TAILQ_EMPTY(&sandbox->queued) && !sandbox->template_process &&
	    !restart_template(sandbox, &error))
		fail_all(&sandbox->queued, &error);
	if (sandbox->ready)
		send_queued(sandbox);
	deliver_failure(sandbox);
}

static void deliver(struct spawn *spawn, struct process *process)
{
	struct rlmd_sandbox *sandbox = spawn->sandbox;
	struct spawned spawned = {process, take_fd(&spawn->ours[0]), take_fd(&spawn->ours[1])};
	sandbox_spawn_fn *fn = spawn->fn;
	void *owner = spawn->owner;

	spawn_free(spawn);
	await_answer(sandbox);
	fn(owner, &spawned, NULL);
}

static void on_launched(struct rlmd_sandbox *sandbox, const struct template_event *event)
{
	struct spawn *spawn = TAILQ_FIRST(&sandbox->sent);
	struct process *process = NULL;
	struct rlmd_error error;

	/* Requests are answered in order; what nobody asked for is not kept. */
	bool known = spawn && spawn->request.sequence == event->sequence;

	if (!event->error)
		process = process_new(&sandbox->processes, event->pid, event->pidfd, event->status,
				      known ? spawn->request.uid : 0,
				      known ? spawn->request.data_limit : 0);
	if (!known) {
		process_free(process);
		return;
	}
	watch_wake(&sandbox->watch);
	timer_post(sandbox->pump);
	if (event->error) {
		errno = event->error;
		error_errno(&error, RLMD_ERROR_SANDBOX, "cannot fork a worker");
		spawn_fail(spawn, &error);
		await_answer(sandbox);
		return;
	}
	if (spawn->fn) {
		deliver(spawn, process);
		return;
	}
	process_free(process);
	spawn_free(spawn);
	await_answer(sandbox);
}

/*
 * For another template, as if it had never been sent: what became of it there may be a
 * process that we do not know. That has other pipes, which end now, descriptions of its
 * own for its inputs, and a uid that is not given back.
 */
static bool renew(struct spawn *spawn, struct rlmd_error *err)
{
	size_t i;

	return_uid(spawn);
	close_all(spawn->ours, 2);
	close_all(spawn->fds, LAUNCH_OWN_FDS);
	for (i = LAUNCH_OWN_FDS; i < spawn->fd_count; i++) {
		int fd = process_reopen_input(spawn->fds[i]);

		if (fd < 0)
			return error_errno(err, RLMD_ERROR_SANDBOX, "cannot reopen an input");
		close(spawn->fds[i]);
		spawn->fds[i] = fd;
	}
	return true;
}

/* Requests to the lost template go to the next one in the same order, but for those that lost too
 * many. */
static void ask_again(struct rlmd_sandbox *sandbox, struct spawn_list *list,
		      const struct rlmd_error *reason)
{
	struct spawn_list again = TAILQ_HEAD_INITIALIZER(again);
	struct spawn *spawn;
	struct rlmd_error error;

	while ((spawn = TAILQ_FIRST(list))) {
		error = *reason;
		if (list == &sandbox->sent)
			spawn->request.uid = 0;
		if (!spawn->fn)
			spawn_free(spawn);
		else if (spawn->losses++ < LOSSES_MAX && renew(spawn, &error))
			spawn_move(spawn, &again);
		else
			spawn_fail(spawn, &error);
	}
	while ((spawn = TAILQ_LAST(&again, spawn_list))) {
		TAILQ_REMOVE(&again, spawn, entry);
		spawn->list = &sandbox->queued;
		TAILQ_INSERT_HEAD(&sandbox->queued, spawn, entry);
	}
}

static void tell_lost(const struct rlmd_sandbox *sandbox, const struct rlmd_error *reason)
{
	const struct spawn *spawn;
	int64_t waiting = 0;

	TAILQ_FOREACH (spawn, &sandbox->sent, entry)
		waiting++;
	TAILQ_FOREACH (spawn, &sandbox->queued, entry)
		waiting++;
	log_write(sandbox->log, LOG_TEMPLATE_LOST,
		  LOG_FIELDS(LOG_NUMBER("pid", sandbox_template_pid(sandbox)),
			     LOG_NUMBER("waiting", waiting)),
		  "the python3 that workers are forked from was lost: %s", reason->text);
}

/* `again`: at its start too it was no fault of what it was told, so that another may do better. */
static void lose_template(struct rlmd_sandbox *sandbox, const struct rlmd_error *reason, bool again)
{
	tell_lost(sandbox, reason);
	if (sandbox->ready)
		ask_again(sandbox, &sandbox->sent, reason);
	else if (again)
		ask_again(sandbox, &sandbox->queued, reason);
	else
		fail_all(&sandbox->queued, reason);
	sandbox->ready = false;
	await_answer(sandbox);
	template_free(take_pointer(&sandbox->template_process));
	timer_post(sandbox->pump);
}

/* One that took another's place must be as good: its layers, and its cgroup. */
static void on_ready(struct rlmd_sandbox *sandbox)
{
	uint32_t wanted = sandbox->template_layers;
	uint32_t have = template_layers(sandbox->template_process) |
			cgroup_layers(sandbox->config.cgroup);
	struct rlmd_error error;

	if ((have & wanted) == wanted) {
		log_write(sandbox->log, LOG_TEMPLATE_RESTARTED,
			  LOG_FIELDS(LOG_NUMBER("pid", sandbox_template_pid(sandbox))),
			  "another template takes the place of the one that was lost");
		sandbox->ready = true;
		timer_post(sandbox->pump);
		return;
	}
	error_set(&error, RLMD_ERROR_SANDBOX, "the new template has fewer layers than the last");
	lose_template(sandbox, &error, false);
}

/* Stopped, or stuck: it does not die of itself, and would be waited for in vain. */
void spawn_overdue(void *arg)
{
	struct rlmd_sandbox *sandbox = arg;
	struct rlmd_error error;

	error_set(&error, RLMD_ERROR_SANDBOX, "%s did not fork a worker within %.1f s",
		  sandbox->config.python, sandbox->answer_ms / 1000.0);
	lose_template(sandbox, &error, true);
}

void spawn_on_template(void *owner, const struct template_event *event)
{
	struct rlmd_sandbox *sandbox = owner;

	switch (event->kind) {
	case TEMPLATE_READY:
		on_ready(sandbox);
		break;
	case TEMPLATE_WRITABLE:
		timer_post(sandbox->pump);
		break;
	case TEMPLATE_LAUNCHED:
		on_launched(sandbox, event);
		break;
	case TEMPLATE_GONE:
		lose_template(sandbox, event->reason, event->again);
		break;
	}
}

static bool open_files(struct spawn *spawn, const int *files, size_t file_count,
		       struct rlmd_error *err)
{
	size_t i;

	if (file_count > LAUNCH_FILES_MAX)
		return error_set(err, RLMD_ERROR_INPUT, "%zu inputs; a worker takes at most %d",
				 file_count, LAUNCH_FILES_MAX);
	for (i = 0; i < file_count; i++) {
		int fd = process_reopen_input(files[i]);
		struct stat file;

		if (fd < 0)
			return error_errno(err, RLMD_ERROR_SANDBOX, "cannot reopen an input");
		spawn->fds[spawn->fd_count++] = fd;
		if (!fstat(fd, &file)) /* it may be mapped, and have room for its characters */
			spawn->request.address_limit += (1 + WIDEST) * (uint64_t)file.st_size;
	}
	return true;
}

struct launch_request spawn_request(uint64_t memory, uint32_t cpu_seconds, size_t file_count)
{
	return (struct launch_request){
		.data_limit = memory,
		/* The interpreter's own mappings and the inputs' count here too, and malloc's
		 * arenas reserve more than they use. */
		.address_limit = 2 * memory + GIB,
		.cpu_seconds = cpu_seconds,
		.file_count = (uint32_t)file_count,
	};
}

struct spawn *sandbox_spawn(struct rlmd_sandbox *sandbox, const int *files, size_t file_count,
			    size_t extra_memory, sandbox_spawn_fn *fn, void *owner)
{
	struct spawn *spawn = xcalloc(1, sizeof *spawn);
	struct rlmd_error error;

	spawn->sandbox = sandbox;
	spawn->fd_count = LAUNCH_OWN_FDS;
	spawn->fds[0] = spawn->fds[1] = spawn->fds[2] = spawn->ours[0] = spawn->ours[1] = -1;
	spawn->fn = fn;
	spawn->owner = owner;
	spawn->request = spawn_request(sandbox->worker_memory + extra_memory,
				       sandbox->processes.cpu_seconds, file_count);
	spawn->request.sequence = ++sandbox->sequence;
	spawn_move(spawn, &sandbox->queued);
	if (!open_files(spawn, files, file_count, &error))
		spawn_fail(spawn, &error);
	timer_post(sandbox->pump);
	return spawn;
}

void spawn_cancel(struct spawn *spawn)
{
	if (!spawn)
		return;
	if (spawn->list == &spawn->sandbox->sent) {
		spawn->fn = NULL; /* what comes of it is freed on arrival */
		return;
	}
	return_uid(spawn);
	spawn_free(spawn);
}

static void free_list(struct spawn_list *list)
{
	struct spawn *spawn;

	while ((spawn = TAILQ_FIRST(list)))
		spawn_free(spawn);
}

void spawn_free_all(struct rlmd_sandbox *sandbox)
{
	free_list(&sandbox->queued);
	free_list(&sandbox->sent);
	free_list(&sandbox->failed);
}
