#include "sandbox/watch.h"

#include "base/timer.h"
#include "sandbox/launch.h"
#include "sandbox/procfs.h"

enum {
	INTERVAL_MS = 200, /* and one more for each process: a look takes some microseconds */
	SLACK_BYTES = 32 << 20,
};

/*
 * The memory is told by the first thread, and not any more when that has ended: of a
 * process that is about to end for as long as that takes, and of one that hides for ever.
 */
static void look_at(struct process *process, const struct procfs_status *used)
{
	int64_t size = used->memory;

	if (size > (int64_t)process->memory + SLACK_BYTES)
		process_condemn(process, "it used more than its memory of %llu MiB",
				(unsigned long long)process->memory >> 20);
	else if (used->threads > LAUNCH_THREADS)
		process_condemn(process, "it had more than %d threads", LAUNCH_THREADS);
	else if (!size && process->hollow && procfs_threads_go_on(process->pid, used->threads))
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
		struct procfs_status used = {0};
		int64_t own;

		/* One that has opened no status has ended at its first wall. */
		if (!process->reaped && process->status >= 0) {
			procfs_read(process->status, &used);
			look_at(process, &used);
		}
		own = used.memory - process->inherited;
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

static void on_timer(void *arg)
{
	struct watch *watch = arg;

	look(watch);
	watch_wake(watch);
}

void watch_init(struct watch *watch, struct process_list *list)
{
	*watch = (struct watch){.list = list};
	watch->timer = timer_new(list->base, on_timer, watch);
	timer_make_urgent(watch->timer);
}

void watch_done(struct watch *watch)
{
	timer_free(watch->timer);
}

void watch_wake(struct watch *watch)
{
	const struct process *process;
	int64_t ms = INTERVAL_MS;

	if (!watch->timer || TAILQ_EMPTY(&watch->list->queue) || timer_waits(watch->timer))
		return;
	TAILQ_FOREACH (process, &watch->list->queue, entry)
		ms++;
	timer_start(watch->timer, ms);
}
