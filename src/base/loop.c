#include "base/loop.h"

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/number.h"

/*
 * The time is what bounds a turn. The count is for callbacks that are next to nothing: each look at
 * the kernel goes over all that is ready, which with thousands of sockets is most of the work (a
 * call of 5,000 in flight: 190 us of CPU with 8, 102 with 64, 86 with 256).
 */
enum {
	TURN_US = 2000,       /* after so long, ... */
	TURN_CALLBACKS = 256, /* ... or so many callbacks, the kernel is asked again */
};

/* libevent's priorities: the lowest number comes first, and new events get the middle one. */
enum { URGENT, USUAL, PRIORITIES };
_Static_assert(USUAL == PRIORITIES / 2, "new events are usual ones");

struct event_base *loop_new(void)
{
	const struct timeval turn = {.tv_usec = TURN_US};
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	if (!config)
		return NULL;
	if (!event_config_set_max_dispatch_interval(config, &turn, TURN_CALLBACKS, URGENT))
		base = event_base_new_with_config(config);
	event_config_free(config);
	if (base && event_base_priority_init(base, PRIORITIES)) {
		event_base_free(base);
		base = NULL;
	}
	return base;
}

struct event *loop_event(struct event_base *base, evutil_socket_t fd, short what,
			 event_callback_fn fn, void *owner)
{
	return xpresent(event_new(base, fd, what, fn, owner));
}

void loop_add(struct event *event, const struct timeval *time)
{
	if (event_add(event, time))
		alloc_failed();
}

void loop_post(struct event *event)
{
	static const struct timeval now = {0};
	const struct timeval *line = event_base_init_common_timeout(event_get_base(event), &now);

	loop_add(event, line ? line : &now);
}

void loop_make_urgent(struct event *event)
{
	event_priority_set(event, URGENT);
}

/* proc(5): the fdinfo of an epoll lists the descriptors that it waits for. */
static bool waits_for(DIR *infos, const char *name, int known)
{
	int dir = dirfd(infos), fd = openat(dir, name, O_RDONLY | O_CLOEXEC), waited;
	FILE *info = fd < 0 ? NULL : fdopen(fd, "re");
	char line[256];
	bool found = false;

	if (!info) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (!found && fgets(line, sizeof line, info))
		found = sscanf(line, "tfd: %d", &waited) == 1 && waited == known;
	fclose(info);
	return found;
}

int loop_fd(int known)
{
	DIR *infos = opendir("/proc/self/fdinfo");
	const struct dirent *entry;
	int fd = -1;

	if (!infos)
		return -1;
	while (fd < 0 && (entry = readdir(infos)))
		if (waits_for(infos, entry->d_name, known))
			fd = (int)strtol(entry->d_name, NULL, 10);
	closedir(infos);
	return fd;
}

/* libevent tells when an event is due on a clock that it does not let us read: an event that is due
 * in a known time, the reference, tells how that clock stands. */
struct next {
	const struct event *reference;
	struct timeval due, reference_due;
	bool any;
};

static int look_at(const struct event_base *base, const struct event *event, void *owner)
{
	struct next *next = owner;
	struct timeval due;

	(void)base;
	if (event == next->reference) {
		event_pending(event, EV_TIMEOUT, &next->reference_due);
	} else if (event_pending(event, EV_TIMEOUT, &due) &&
		   (!next->any || timercmp(&due, &next->due, <))) {
		next->due = due;
		next->any = true;
	}
	return 0;
}

static void on_reference(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	(void)owner;
}

int64_t loop_next_ms(struct event_base *base)
{
	static const struct timeval day = {.tv_sec = 86400};
	struct event *reference = loop_event(base, -1, 0, on_reference, NULL);
	struct next next = {.reference = reference};
	struct timeval from_reference;

	loop_add(reference, &day);
	event_base_foreach_event(base, look_at, &next);
	event_free(reference);
	if (event_base_get_num_events(base, EVENT_BASE_COUNT_ACTIVE) > 0)
		return 0;
	if (!next.any)
		return -1;
	timersub(&next.due, &next.reference_due, &from_reference);
	return int64_max((day.tv_sec + from_reference.tv_sec) * 1000 +
				 (from_reference.tv_usec + 999) / 1000,
			 0);
}

bool loop_start_thread(pthread_t *ret, void *(*work)(void *), void *owner, struct rlmd_error *err)
{
	sigset_t all, before;
	int why;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	why = pthread_create(ret, NULL, work, owner);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = why;
	return !why || error_errno(err, why == EAGAIN ? RLMD_ERROR_MACHINE : RLMD_ERROR_INTERNAL,
				   "cannot start a thread");
}
