#include "sandbox/watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "sandbox/launch.h"
#include "sandbox/threads.h"

enum {
	INTERVAL_MS = 200, /* and one more for each process: a look takes some microseconds */
	SLACK_BYTES = 32 << 20,
};

/* Bytes that no file stands behind; -1 and errno. */
static int64_t private_memory(pid_t pid)
{
	char path[32], content[128] = "";
	long long resident, shared;
	auto_close int fd = -1;

	snprintf(path, sizeof path, "/proc/%d/statm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, content, sizeof content - 1) < 0)
		return -1;
	if (sscanf(content, "%*d %lld %lld", &resident, &shared) != 2)
		return -1;
	return (resident - shared) * sysconf(_SC_PAGESIZE);
}

/* The kernel counts them among the links of their directory, besides its own two; or 0. */
static unsigned long threads(pid_t pid)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof path, "/proc/%d/task", pid);
	return stat(path, &st) || st.st_nlink < 2 ? 0 : st.st_nlink - 2;
}

/*
 * The memory is told by the first thread, and not any more when that has ended: of a
 * process that is about to end for as long as that takes, and of one that hides for ever.
 */
static void look_at(struct process *process, int64_t size)
{
	if (size > (int64_t)process->memory + SLACK_BYTES)
		process_condemn(process, "it used more than its memory of %llu MiB",
				(unsigned long long)process->memory >> 20);
	else if (threads(process->pid) > LAUNCH_THREADS)
		process_condemn(process, "it had more than %d threads", LAUNCH_THREADS);
	else if (!size && process->hollow && threads_go_on(process->pid))
		process_condemn(process, "its main thread had ended");
	process->hollow = !size;
}

/* The largest is told that it was all of them; the next look tells whether that was enough. */
static void look(struct watch *watch)
{
	struct process_list *list = watch->list;
	struct process *process, *largest = NULL;
	int64_t sum = 0, most = 0;

	TAILQ_FOREACH (process, &list->queue, entry) {
		int64_t size = process->reaped ? 0 : private_memory(process->pid);
		int64_t own = size - watch->shared;

		if (!process->reaped)
			look_at(process, size);
		if (*process->verdict || own <= 0)
			continue;
		sum += own;
		if (own > most) {
			most = own;
			largest = process;
		}
	}
	if (largest && (uint64_t)sum > list->ceiling)
		process_condemn(largest,
				"all workers together used more than their memory of %llu MiB, "
				"and it the most",
				(unsigned long long)list->ceiling >> 20);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct watch *watch = arg;

	(void)fd;
	(void)what;
	look(watch);
	watch_wake(watch);
}

bool watch_init(struct watch *watch, struct process_list *list, pid_t template, struct steps *steps)
{
	*watch = (struct watch){.list = list};
	watch->shared = STEP_TRY(steps, watch, private_memory(template));
	if (watch->shared < 0)
		return false;
	watch->timer = evtimer_new(list->base, on_timer, watch);
	loop_make_urgent(watch->timer);
	return true;
}

void watch_done(struct watch *watch)
{
	if (watch->timer)
		event_free(watch->timer);
}

void watch_wake(struct watch *watch)
{
	const struct process *process;
	struct timeval delay;
	int64_t ms = INTERVAL_MS;

	if (!watch->timer || TAILQ_EMPTY(&watch->list->queue) ||
	    event_pending(watch->timer, EV_TIMEOUT, NULL))
		return;
	TAILQ_FOREACH (process, &watch->list->queue, entry)
		ms++;
	delay = clock_timeval(ms);
	event_add(watch->timer, &delay);
}
