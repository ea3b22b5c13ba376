#include "batch/syncer.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"

struct syncer {
	syncer_fn *fn;
	void *owner;          /* lent: fn's */
	struct event *answer; /* owned: `done` is readable */
	pthread_t thread;
	int fd;     /* lent */
	int wanted; /* owned: an eventfd that the thread waits for */
	int done;   /* owned: ... and one by which it answers */
	atomic_int error;
	atomic_bool stopping;
	bool running; /* there is a thread */
	bool busy;    /* it was asked, and has not answered */
};

static bool await(int fd)
{
	uint64_t count;
	ssize_t got;

	do
		got = read(fd, &count, sizeof count);
	while (got < 0 && errno == EINTR);
	return got == sizeof count;
}

static void tell(int fd)
{
	const uint64_t one = 1;
	ssize_t put = write(fd, &one, sizeof one);

	assert(put == sizeof one);
	(void)put;
}

static void *work(void *arg)
{
	struct syncer *syncer = arg;

	while (await(syncer->wanted) && !atomic_load(&syncer->stopping)) {
		atomic_store(&syncer->error, fdatasync(syncer->fd) ? errno : 0);
		tell(syncer->done);
	}
	return NULL;
}

static void on_answer(evutil_socket_t fd, short what, void *arg)
{
	struct syncer *syncer = arg;

	(void)what;
	if (!await(fd))
		return;
	syncer->busy = false;
	syncer->fn(syncer->owner, atomic_load(&syncer->error));
}

struct syncer *syncer_new(struct event_base *base, int fd, syncer_fn *fn, void *owner,
			  struct rlmd_error *err)
{
	struct syncer *syncer = xcalloc(1, sizeof *syncer);

	*syncer = (struct syncer){.fn = fn, .owner = owner, .fd = fd};
	syncer->wanted = eventfd(0, EFD_CLOEXEC);
	syncer->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (syncer->wanted < 0 || syncer->done < 0)
		error_errno(err, RLMD_ERROR_INTERNAL, "cannot make an eventfd");
	else if (thread_start(&syncer->thread, work, syncer, err)) {
		syncer->running = true;
		syncer->answer = event_new(base, syncer->done, EV_READ | EV_PERSIST, on_answer,
					   syncer);
		event_add(syncer->answer, NULL);
		return syncer;
	}
	syncer_free(syncer);
	return NULL;
}

void syncer_start(struct syncer *syncer)
{
	assert(!syncer->busy);
	syncer->busy = true;
	tell(syncer->wanted);
}

void syncer_free(struct syncer *syncer)
{
	if (!syncer)
		return;
	if (syncer->running) {
		atomic_store(&syncer->stopping, true);
		tell(syncer->wanted);
		pthread_join(syncer->thread, NULL);
	}
	if (syncer->answer)
		event_free(syncer->answer);
	if (syncer->wanted >= 0)
		close(syncer->wanted);
	if (syncer->done >= 0)
		close(syncer->done);
	free(syncer);
}
