#include "sandbox/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/loop.h"
#include "sandbox/child.h"
#include "sandbox/launch.h"

enum { NO_CLOCK = CLOCK_REALTIME }; /* 0, and no process's */

/* The uid of one that was not reaped is in use still, and nobody gets it again. */
static void process_destroy(struct process *process)
{
	struct process_list *list = process->list;

	TAILQ_REMOVE(&list->queue, process, entry);
	if (process->uid && process->reaped)
		uids_give(&list->uids, process->uid);
	event_free(process->exit);
	close(process->pidfd);
	if (process->status >= 0)
		close(process->status);
	free(process);
}

static int64_t milliseconds(struct timeval time)
{
	return (int64_t)time.tv_sec * 1000 + time.tv_usec / 1000;
}

/*
 * Names the killer, where it was a limit: us, the kernel for the memory of all, or for its time.
 * The time that the kernel kills for is counted in ticks; on a busy machine that is more than the
 * time that it tells us.
 */
static void explain(struct process *process, struct process_exit *exit)
{
	struct process_list *list = process->list;
	int64_t cpu_ms = (int64_t)list->cpu_seconds * 1000;
	char time[16];

	if (!exit->unknown && (!exit->signaled || exit->status != SIGKILL))
		return;
	if (*process->verdict) {
		snprintf(exit->reason, sizeof exit->reason, "%s", process->verdict);
	} else if (list->cgroup && cgroup_kills(list->cgroup) > list->kills) {
		list->kills++;
		snprintf(exit->reason, sizeof exit->reason,
			 "all workers together used more than their memory of %llu MiB",
			 (unsigned long long)list->ceiling >> 20);
	} else if (exit->cpu_ms >= cpu_ms / 4 * 3) {
		clock_format(cpu_ms, time);
		snprintf(exit->reason, sizeof exit->reason,
			 "it used more than its processor time of %s", time);
	}
}

/* False while it lives. */
static bool process_reap(struct process *process, struct process_exit *ret_exit)
{
	siginfo_t info = {0};
	struct rusage usage = {0};
	long failed;

	/* Not the library's waitid(): it does not tell the usage. */
	do
		failed = syscall(SYS_waitid, P_PIDFD, process->pidfd, &info, WEXITED | WNOHANG,
				 &usage);
	while (failed && errno == EINTR);
	if (!failed && !info.si_pid)
		return false;
	process->reaped = true;
	/* Where the host ignores SIGCHLD the kernel reaps, and where it waits for any child, it. */
	*ret_exit = (struct process_exit){
		.unknown = failed,
		.signaled = !failed && info.si_code != CLD_EXITED,
		.status = failed ? 0 : info.si_status,
		.cpu_ms = milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime),
	};
	explain(process, ret_exit);
	return true;
}

static void on_exit_readable(evutil_socket_t fd, short what, void *arg)
{
	struct process *process = arg;
	struct process_exit exit;
	process_exit_fn *fn = process->fn;

	(void)fd;
	(void)what;
	if (!process_reap(process, &exit))
		return;
	if (process->freed) {
		process_destroy(process);
		return;
	}
	event_del(process->exit);
	process->fn = NULL;
	fn(process->owner, &exit);
}

/* Where there is no /proc to open it by, all of it once more. */
static int copy_file(int file)
{
	auto_close int copy = memfd_create("input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	off_t from = 0;
	ssize_t copied = copy < 0 ? -1 : 1;

	while (copied > 0)
		copied = sendfile(copy, file, &from, 1 << 30);
	if (copied < 0 || !file_seal(copy))
		return -1;
	return take_fd(&copy);
}

int process_reopen_input(int file)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 && errno == ENOENT ? copy_file(file) : fd;
}

struct process *process_new(struct process_list *list, pid_t pid, int pidfd, int status,
			    uint32_t uid, uint64_t memory)
{
	struct process *process = xcalloc(1, sizeof *process);
	struct procfs_status born = {0};

	process->list = list;
	process->pid = pid;
	process->pidfd = pidfd;
	process->uid = uid;
	process->memory = memory;
	process->status = status;
	/* Of its own it has nothing yet: it was not told what to run. */
	procfs_read(status, &born);
	process->inherited = born.memory;
	if (clock_getcpuclockid(pid, &process->clock))
		process->clock = NO_CLOCK;
	process->exit = loop_event(list->base, pidfd, EV_READ | EV_PERSIST, on_exit_readable,
				   process);
	TAILQ_INSERT_TAIL(&list->queue, process, entry);
	return process;
}

void process_on_exit(struct process *process, process_exit_fn *fn, void *owner)
{
	process->fn = fn;
	process->owner = owner;
	if (!process->reaped)
		loop_add(process->exit, NULL); /* the pidfd of a dead child stays readable */
}

static void process_signal(const struct process *process, int signal)
{
	syscall(SYS_pidfd_send_signal, process->pidfd, signal, NULL, 0);
}

void process_interrupt(struct process *process)
{
	process_signal(process, SIGINT);
}

void process_kill(struct process *process)
{
	process_signal(process, SIGKILL);
}

void process_condemn(struct process *process, const char *fmt, ...)
{
	va_list args;

	if (*process->verdict)
		return; /* what it does while it dies is no reason for it */
	va_start(args, fmt);
	vsnprintf(process->verdict, sizeof process->verdict, fmt, args);
	va_end(args);
	process_kill(process);
}

void process_free(struct process *process)
{
	if (!process)
		return;
	assert(!process->freed);
	process->freed = true;
	process->fn = NULL;
	if (process->reaped) {
		process_destroy(process);
		return;
	}
	process_signal(process, SIGKILL);
	loop_add(process->exit, NULL); /* reaped by the loop, which must not wait for it here */
}

pid_t process_pid(const struct process *process)
{
	return process->pid;
}

int64_t process_cpu_ms(const struct process *process)
{
	struct timespec used;

	if (process->reaped || process->clock == NO_CLOCK || clock_gettime(process->clock, &used))
		return -1;
	return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

const char *process_exit_wall(const struct process_exit *exit)
{
	static const char *const meanings[] = {
#define WALL(name, layer, meaning) meaning,
#include "sandbox/walls.def"
#undef WALL
	};
	int wall = exit->status - WALL_EXIT;

	return !exit->unknown && !exit->signaled && wall >= 0 && wall < WALL_COUNT ? meanings[wall]
										   : NULL;
}

void process_list_reap(struct process_list *list, int64_t deadline)
{
	struct process *process;
	int status;

	while ((process = TAILQ_FIRST(&list->queue))) {
		assert(process->freed);
		if (!process->reaped)
			process->reaped = child_end(process->pid, deadline, &status);
		process_destroy(process);
	}
}

void process_list_cut(struct process_list *list)
{
	struct process *process;

	TAILQ_FOREACH (process, &list->queue, entry) {
		process->reaped = true; /* by the parent, when its time comes */
		process->uid = 0;
		file_cut_forked(process->pidfd);
	}
}
