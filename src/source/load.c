/*
 * rlmd/context.h: loading, blocking and on a loop. Both take the same steps.
 */
#include <event2/event.h>
#include <poll.h>
#include <rlmd/context.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/sized.h"
#include "base/wait.h"
#include "source/loading.h"

enum {
	LOOK_MS = 200, /* between two questions whether to go on, where nothing comes */
	TURN_MS = 2,   /* of the loop's time that steps take at once */
};

struct rlmd_context_loading {
	struct loading *loading; /* owned */
	struct rlmd_context_options options;
	int64_t deadline;     /* of clock_ms(), or WAIT_FOREVER */
	struct event *next;   /* owned: the next steps; NULL: the caller waits */
	struct event *arrive; /* owned, while something is waited for */
	rlmd_context_done_fn *done;
	void *owner;     /* lent */
	bool *cancelled; /* lent: where somebody is to be told that it is gone */
};

static void start_clock(struct rlmd_context_loading *load)
{
	int64_t now = clock_ms(), time = load->options.timeout_ms;

	load->deadline = time > 0 && time < WAIT_FOREVER - now ? now + time : WAIT_FOREVER;
}

/* When to ask again whether to go on. */
static int64_t soon(const struct rlmd_context_loading *load)
{
	int64_t look = clock_ms() + LOOK_MS;

	return look < load->deadline ? look : load->deadline;
}

static bool may_go_on(const struct rlmd_context_loading *load, struct rlmd_error *err)
{
	const struct rlmd_context_options *options = &load->options;
	int64_t deadline = load->deadline; /* the callback may cancel, and it is gone */

	if (options->progress && !options->progress(options->owner, loading_bytes(load->loading),
						    loading_files(load->loading)))
		return error_set(err, RLMD_ERROR_CANCELLED, "stopped before all was read");
	return clock_ms() < deadline ||
	       error_set(err, RLMD_ERROR_BUDGET, "the time was over before all was read");
}

static struct rlmd_context *take(struct loading *loading)
{
	struct context context;

	loading_take(loading, &context);
	return context_publish(&context);
}

/* False where they, or the sources, cannot be. */
static bool take_options(const char *const *sources, size_t count,
			 const struct rlmd_context_options *given, struct rlmd_context_options *ret,
			 struct rlmd_error *err)
{
	if (!sized_take(ret, sizeof *ret, given, offsetof(struct rlmd_context_options, include),
			"rlmd_context_options", err))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!sources || !sources[i])
			return error_set(err, RLMD_ERROR_USAGE, "source %zu of a context is NULL",
					 i);
	return true;
}

struct rlmd_context *rlmd_context_load(const char *const *sources, size_t count,
				       const struct rlmd_context_options *options,
				       struct rlmd_error *err)
{
	struct rlmd_context_loading load = {0};
	struct rlmd_context *context = NULL;
	enum loader_end end = LOADER_GOES_ON;

	if (!take_options(sources, count, options, &load.options, err))
		return NULL;
	load.loading = loading_new(sources, count, &load.options, err);
	if (!load.loading)
		return NULL;
	start_clock(&load);
	while (end == LOADER_GOES_ON || end == LOADER_WAITS) {
		if (!may_go_on(&load, err)) {
			loading_blame(load.loading, err);
			break;
		}
		if (end == LOADER_WAITS)
			wait_for(loading_fd(load.loading), POLLIN, soon(&load), 0);
		end = loading_step(load.loading, err);
	}
	if (end == LOADER_DONE)
		context = take(load.loading);
	loading_free(load.loading);
	return context;
}

/* C3: it is gone before anybody hears of it. */
static void end_with(struct rlmd_context_loading *load, struct rlmd_context *context,
		     const struct rlmd_error *err)
{
	rlmd_context_done_fn *done = load->done;
	void *owner = load->owner;

	rlmd_context_load_cancel(load);
	done(owner, context, err);
}

static void on_arrival(evutil_socket_t fd, short what, void *owner)
{
	struct rlmd_context_loading *load = owner;

	(void)fd;
	(void)what;
	loop_post(load->next);
}

/* What somebody sends is waited for, and now and then it is asked whether to go on. */
static void await(struct rlmd_context_loading *load)
{
	struct timeval look = clock_timeval(soon(load) - clock_ms());

	event_free(load->arrive);
	load->arrive = event_new(event_get_base(load->next), loading_fd(load->loading),
				 EV_READ | EV_TIMEOUT, on_arrival, load);
	event_add(load->arrive, &look);
}

/* As many as the loop has time for in one turn; false: `ret_err` says why. */
static bool go_on(struct rlmd_context_loading *load, enum loader_end *ret_end,
		  struct rlmd_error *ret_err)
{
	int64_t stop = clock_ms() + TURN_MS;

	do {
		*ret_end = loading_step(load->loading, ret_err);
	} while (*ret_end == LOADER_GOES_ON && clock_ms() < stop);
	return *ret_end != LOADER_FAILED;
}

static void on_next(evutil_socket_t fd, short what, void *owner)
{
	struct rlmd_context_loading *load = owner;
	struct rlmd_error err = {0};
	enum loader_end end;
	bool cancelled = false, may;

	(void)fd;
	(void)what;
	load->cancelled = &cancelled;
	may = may_go_on(load, &err);
	if (cancelled)
		return;
	load->cancelled = NULL;
	if (!may) {
		loading_blame(load->loading, &err);
		end_with(load, NULL, &err);
	} else if (!go_on(load, &end, &err)) {
		end_with(load, NULL, &err);
	} else if (end == LOADER_DONE) {
		end_with(load, take(load->loading), NULL);
	} else if (end == LOADER_WAITS) {
		await(load);
	} else {
		loop_post(load->next);
	}
}

struct rlmd_context_loading *rlmd_context_load_start(struct event_base *base,
						     const char *const *sources, size_t count,
						     const struct rlmd_context_options *options,
						     rlmd_context_done_fn *done, void *owner,
						     struct rlmd_error *err)
{
	struct rlmd_context_options taken;
	struct rlmd_context_loading *load;

	if (!take_options(sources, count, options, &taken, err))
		return NULL;
	if (!base || !done) {
		error_set(err, RLMD_ERROR_USAGE, "loading needs an event base and a callback");
		return NULL;
	}
	load = xcalloc(1, sizeof *load);
	load->loading = loading_new(sources, count, &taken, err);
	if (!load->loading) {
		free(load);
		return NULL;
	}
	load->options = taken;
	start_clock(load);
	load->done = done;
	load->owner = owner;
	load->next = evtimer_new(base, on_next, load);
	load->arrive = evtimer_new(base, on_arrival, load);
	loop_post(load->next);
	return load;
}

void rlmd_context_load_cancel(struct rlmd_context_loading *load)
{
	if (!load)
		return;
	if (load->cancelled)
		*load->cancelled = true;
	event_free(load->next);
	event_free(load->arrive);
	loading_free(load->loading);
	free(load);
}
