#include "fake/sandbox.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "sandbox/child.h"

enum { FILES_MAX = 16 };

struct rlmd_sandbox {
	struct event_base *base; /* lent */
	fake_script_fn *script;
	bool refuse, spare;
	const char *verdict; /* lent, or NULL */
	size_t memory;
	bool maps_texts;
	int interrupts, living, spawns;
	ino_t files[FILES_MAX]; /* the first of each of the first processes */
};

struct spawn {
	struct rlmd_sandbox *sandbox; /* lent */
	struct process *process;      /* owned until the callback, like the pipes */
	int from, to;
	struct event *event; /* owned */
	sandbox_spawn_fn *fn;
	void *owner; /* lent */
};

struct process {
	struct rlmd_sandbox *sandbox; /* lent */
	pid_t pid;
	int pidfd;           /* owned */
	struct event *event; /* owned */
	bool over;
	process_exit_fn *fn;
	void *owner; /* lent */
};

struct rlmd_sandbox *fake_sandbox_new(struct event_base *base)
{
	struct rlmd_sandbox *sandbox = xcalloc(1, sizeof *sandbox);

	sandbox->base = base;
	return sandbox;
}

void sandbox_free(struct rlmd_sandbox *sandbox)
{
	free(sandbox);
}

void fake_sandbox_script(struct rlmd_sandbox *sandbox, fake_script_fn *script)
{
	sandbox->script = script;
}

void fake_sandbox_refuse(struct rlmd_sandbox *sandbox, bool refuse)
{
	sandbox->refuse = refuse;
}

void fake_sandbox_condemn(struct rlmd_sandbox *sandbox, const char *why)
{
	sandbox->verdict = why;
}

void fake_sandbox_spare(struct rlmd_sandbox *sandbox, bool spare)
{
	sandbox->spare = spare;
}

size_t fake_sandbox_memory(const struct rlmd_sandbox *sandbox)
{
	return sandbox->memory;
}

void fake_sandbox_map(struct rlmd_sandbox *sandbox, bool maps)
{
	sandbox->maps_texts = maps;
}

ino_t fake_sandbox_file(const struct rlmd_sandbox *sandbox, int spawn)
{
	return sandbox->files[spawn];
}

int fake_sandbox_interrupts(const struct rlmd_sandbox *sandbox)
{
	return sandbox->interrupts;
}

int fake_sandbox_living(const struct rlmd_sandbox *sandbox)
{
	return sandbox->living;
}

static void on_pidfd(evutil_socket_t fd, short what, void *arg)
{
	struct process *process = arg;
	siginfo_t info = {0};
	struct process_exit over = {0};

	(void)fd;
	(void)what;
	waitid(P_PIDFD, (id_t)process->pidfd, &info, WEXITED);
	process->over = true;
	over.signaled = info.si_code != CLD_EXITED;
	over.status = info.si_status;
	if (over.signaled && process->sandbox->verdict)
		snprintf(over.reason, sizeof over.reason, "%s", process->sandbox->verdict);
	process->fn(process->owner, &over);
}

static struct process *fork_process(struct rlmd_sandbox *sandbox, int in, int out)
{
	struct process *process = xcalloc(1, sizeof *process);

	process->sandbox = sandbox;
	process->pid = fork();
	if (!process->pid) {
		dup2(in, 100);
		dup2(out, 101);
		dup2(100, 3);
		dup2(101, 4);
		close_range(5, ~0U, 0);
		_exit(sandbox->script(3, 4));
	}
	process->pidfd = pidfd_open(process->pid, 0);
	sandbox->living++;
	return process;
}

static void on_spawned(evutil_socket_t fd, short what, void *arg)
{
	struct spawn *spawn = arg;
	sandbox_spawn_fn *fn = spawn->fn;
	struct spawned spawned = {spawn->process, spawn->from, spawn->to};
	void *owner = spawn->owner;
	struct rlmd_error err;

	(void)fd;
	(void)what;
	error_set(&err, RLMD_ERROR_SANDBOX, "this sandbox refuses");
	event_free(spawn->event);
	free(spawn);
	fn(owner, spawned.process ? &spawned : NULL, &err);
}

static void note_file(struct rlmd_sandbox *sandbox, int file)
{
	struct stat stat;

	if (sandbox->spawns < FILES_MAX && !fstat(file, &stat))
		sandbox->files[sandbox->spawns] = stat.st_ino;
	sandbox->spawns++;
}

static void fork_spawned(struct spawn *spawn)
{
	int ours[2], theirs[2];
	struct rlmd_error err;

	if (!child_open_pipes(ours, theirs, &err))
		abort();
	spawn->process = fork_process(spawn->sandbox, theirs[0], theirs[1]);
	close(theirs[0]);
	close(theirs[1]);
	spawn->from = ours[0];
	spawn->to = ours[1];
}

struct spawn *sandbox_spawn(struct rlmd_sandbox *sandbox, const int *files, size_t file_count,
			    size_t extra_memory, sandbox_spawn_fn *fn, void *owner)
{
	struct spawn *spawn = xcalloc(1, sizeof *spawn);

	note_file(sandbox, file_count ? files[0] : -1);
	sandbox->memory = extra_memory;
	spawn->sandbox = sandbox;
	spawn->fn = fn;
	spawn->owner = owner;
	if (!sandbox->refuse)
		fork_spawned(spawn);
	spawn->event = evtimer_new(sandbox->base, on_spawned, spawn);
	event_add(spawn->event, &(struct timeval){0});
	return spawn;
}

void spawn_cancel(struct spawn *spawn)
{
	if (!spawn)
		return;
	if (spawn->process) {
		process_free(spawn->process);
		close(spawn->from);
		close(spawn->to);
	}
	event_free(spawn->event);
	free(spawn);
}

void process_on_exit(struct process *process, process_exit_fn *fn, void *owner)
{
	process->fn = fn;
	process->owner = owner;
	process->event = event_new(process->sandbox->base, process->pidfd, EV_READ, on_pidfd,
				   process);
	event_add(process->event, NULL);
}

void process_interrupt(struct process *process)
{
	process->sandbox->interrupts++;
	pidfd_send_signal(process->pidfd, SIGINT, NULL, 0);
}

void process_kill(struct process *process)
{
	if (!process->sandbox->spare)
		pidfd_send_signal(process->pidfd, SIGKILL, NULL, 0);
}

void process_free(struct process *process)
{
	siginfo_t info;

	if (!process)
		return;
	if (!process->over) {
		pidfd_send_signal(process->pidfd, SIGKILL, NULL, 0);
		waitid(P_PIDFD, (id_t)process->pidfd, &info, WEXITED);
	}
	if (process->event)
		event_free(process->event);
	close(process->pidfd);
	process->sandbox->living--;
	free(process);
}

const char *process_exit_wall(const struct process_exit *exit)
{
	return !exit->signaled && exit->status == FAKE_WALL_EXIT ? "the wall of this fake" : NULL;
}

pid_t process_pid(const struct process *process)
{
	return process->pid;
}

int64_t process_cpu_ms(const struct process *process)
{
	struct timespec used;
	clockid_t clock;

	if (process->over || clock_getcpuclockid(process->pid, &clock) ||
	    clock_gettime(clock, &used))
		return -1;
	return ((int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000);
}

struct rlmd_sandbox *sandbox_begin(struct event_base *base, const struct sandbox_config *config,
				   struct rlmd_error *err)
{
	(void)base;
	(void)config;
	error_set(err, RLMD_ERROR_SANDBOX, "there is but the fake one");
	return NULL;
}

bool sandbox_await(struct rlmd_sandbox *sandbox, struct rlmd_error *err)
{
	(void)sandbox;
	(void)err;
	return true;
}

void sandbox_cut(struct rlmd_sandbox *sandbox)
{
	(void)sandbox;
}

void sandbox_on_ready(struct rlmd_sandbox *sandbox, rlmd_sandbox_ready_fn *fn, void *owner)
{
	(void)sandbox;
	(void)fn;
	(void)owner;
}

bool sandbox_maps_texts(const struct rlmd_sandbox *sandbox)
{
	return sandbox->maps_texts;
}

const char *const *sandbox_preload(const struct rlmd_sandbox *sandbox)
{
	(void)sandbox;
	return NULL;
}

const char *sandbox_python_version(const struct rlmd_sandbox *sandbox)
{
	(void)sandbox;
	return NULL;
}

const char *rlmd_sandbox_level(const struct rlmd_sandbox *sandbox)
{
	(void)sandbox;
	return "L1";
}
