#include "llm/multi.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"

enum {
	SHARDS_MAX = 32,
	SHARD_TRANSFERS = 250, /* libcurl scans a handle's connections at each request */
};

struct shard {
	CURLM *multi;            /* owned */
	struct event *timer;     /* owned: libcurl's own */
	struct event_base *base; /* lent */
	multi_over_fn *fn;
	size_t transfers;
};

struct multi {
	struct event_base *base; /* lent */
	multi_over_fn *fn;
	struct shard *shards[SHARDS_MAX]; /* owned */
	size_t count;
};

static void on_socket(evutil_socket_t fd, short what, void *arg);
static void on_timer(evutil_socket_t fd, short what, void *arg);

/* libcurl wants to know when `fd` is ready; `watch` is what we kept there before. */
static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *watch)
{
	struct shard *shard = arg;
	short events = EV_PERSIST;
	struct event *event;

	(void)easy;
	if (watch)
		event_free(watch);
	if (what == CURL_POLL_REMOVE) {
		curl_multi_assign(shard->multi, fd, NULL);
		return 0;
	}
	if (what & CURL_POLL_IN)
		events |= EV_READ;
	if (what & CURL_POLL_OUT)
		events |= EV_WRITE;
	event = event_new(shard->base, fd, events, on_socket, shard);
	event_add(event, NULL);
	curl_multi_assign(shard->multi, fd, event);
	return 0;
}

static int on_curl_timer(CURLM *multi, long ms, void *arg)
{
	struct shard *shard = arg;
	struct timeval wait = clock_timeval(ms);

	(void)multi;
	if (ms < 0)
		event_del(shard->timer);
	else
		event_add(shard->timer, &wait);
	return 0;
}

static void shard_free(struct shard *shard)
{
	if (!shard)
		return;
	if (shard->multi)
		curl_multi_cleanup(shard->multi);
	if (shard->timer)
		event_free(shard->timer);
	free(shard);
}

static struct shard *shard_new(struct event_base *base, multi_over_fn *fn)
{
	struct shard *shard = xcalloc(1, sizeof *shard);

	shard->base = base;
	shard->fn = fn;
	shard->timer = evtimer_new(base, on_timer, shard);
	shard->multi = curl_multi_init();
	if (!shard->multi) {
		shard_free(shard);
		return NULL;
	}
	curl_multi_setopt(shard->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
	curl_multi_setopt(shard->multi, CURLMOPT_SOCKETDATA, shard);
	curl_multi_setopt(shard->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
	curl_multi_setopt(shard->multi, CURLMOPT_TIMERDATA, shard);
	/* Its own limit follows the number of transfers down, and closes what a burst opened. */
	curl_multi_setopt(shard->multi, CURLMOPT_MAXCONNECTS, (long)SHARD_TRANSFERS);
	return shard;
}

struct multi *multi_new(struct event_base *base, multi_over_fn *fn)
{
	struct multi *multi = xcalloc(1, sizeof *multi);

	multi->base = base;
	multi->fn = fn;
	multi->shards[0] = shard_new(base, fn);
	if (!multi->shards[0]) {
		multi_free(multi);
		return NULL;
	}
	multi->count = 1;
	return multi;
}

void multi_free(struct multi *multi)
{
	if (!multi)
		return;
	for (size_t i = 0; i < multi->count; i++)
		shard_free(multi->shards[i]);
	free(multi);
}

static struct shard *least_loaded(struct multi *multi)
{
	struct shard *least = multi->shards[0], *grown;

	for (size_t i = 1; i < multi->count; i++)
		if (multi->shards[i]->transfers < least->transfers)
			least = multi->shards[i];
	if (least->transfers < SHARD_TRANSFERS || multi->count == SHARDS_MAX)
		return least;
	grown = shard_new(multi->base, multi->fn);
	if (!grown)
		return least;
	return multi->shards[multi->count++] = grown;
}

struct shard *multi_add(struct multi *multi, CURL *easy)
{
	struct shard *shard = least_loaded(multi);

	shard->transfers++;
	curl_multi_add_handle(shard->multi, easy);
	return shard;
}

void multi_remove(struct shard *shard, CURL *easy)
{
	shard->transfers--;
	curl_multi_remove_handle(shard->multi, easy);
}

/* Lets libcurl act, then takes up what it finished: nothing of ours runs inside of it. */
static void shard_act(struct shard *shard, curl_socket_t fd, int ready)
{
	CURLMsg *message;
	int count;

	curl_multi_socket_action(shard->multi, fd, ready, &count);
	while ((message = curl_multi_info_read(shard->multi, &count)))
		shard->fn(message->easy_handle, message->data.result);
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
	int ready = 0;

	if (what & EV_READ)
		ready |= CURL_CSELECT_IN;
	if (what & EV_WRITE)
		ready |= CURL_CSELECT_OUT;
	shard_act(arg, fd, ready);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	shard_act(arg, CURL_SOCKET_TIMEOUT, 0);
}
