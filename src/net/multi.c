#include "net/multi.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "base/loop.h"
#include "base/timer.h"
#include "net/curl_check.h"

enum {
	SHARDS_MAX = 32,
	SHARD_TRANSFERS = 250, /* libcurl scans a handle's connections at each request */
};

/* A descriptor that libcurl waits for; or one of those that nobody uses. */
struct socket_watch {
	struct event *event; /* owned */
	SLIST_ENTRY(socket_watch) entry;
};

struct shard {
	struct multi *all;   /* lent */
	CURLM *multi;        /* owned */
	struct timer *timer; /* owned: libcurl's own */
	size_t transfers;
};

struct multi {
	struct event_base *base; /* lent */
	multi_over_fn *over;
	multi_acted_fn *acted;
	void *owner; /* lent */
	bool acting;
	SLIST_HEAD(socket_watches, socket_watch) spare; /* owned */
	struct shard *shards[SHARDS_MAX];               /* owned */
	size_t count;
};

static void on_socket(evutil_socket_t fd, short what, void *arg);
static void on_timer(void *arg);

static struct socket_watch *socket_watch_take(struct multi *multi)
{
	struct socket_watch *watch = SLIST_FIRST(&multi->spare);

	if (watch) {
		SLIST_REMOVE_HEAD(&multi->spare, entry);
		return watch;
	}
	watch = xcalloc(1, sizeof *watch);
	watch->event = loop_event(multi->base, -1, 0, on_socket, NULL);
	return watch;
}

/*
 * libcurl wants to know when `fd` is ready; `arg_watch` is what we kept there before. An event is
 * used again, for another descriptor too. It is not left waiting between the requests of a
 * connection, though that would save two system calls: libcurl closes some sockets without a word,
 * and whoever got the number next would wait on a dead one's event.
 */
static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *arg_watch)
{
	struct shard *shard = arg;
	struct socket_watch *watch = arg_watch;
	short events = EV_PERSIST;

	(void)easy;
	if (watch)
		event_del(watch->event);
	if (what == CURL_POLL_REMOVE) {
		curl_multi_assign(shard->multi, fd, NULL);
		if (watch)
			SLIST_INSERT_HEAD(&shard->all->spare, watch, entry);
		return 0;
	}
	if (!watch)
		watch = socket_watch_take(shard->all);
	if (what & CURL_POLL_IN)
		events |= EV_READ;
	if (what & CURL_POLL_OUT)
		events |= EV_WRITE;
	event_assign(watch->event, shard->all->base, fd, events, on_socket, shard);
	loop_add(watch->event, NULL);
	curl_multi_assign(shard->multi, fd, watch);
	return 0;
}

static int on_curl_timer(CURLM *multi, long ms, void *arg)
{
	struct shard *shard = arg;

	(void)multi;
	if (ms < 0)
		timer_stop(shard->timer);
	else
		timer_start(shard->timer, ms);
	return 0;
}

static void shard_free(struct shard *shard)
{
	if (!shard)
		return;
	if (shard->multi)
		curl_multi_cleanup(shard->multi);
	timer_free(shard->timer);
	free(shard);
}

static struct shard *shard_new(struct multi *all)
{
	struct shard *shard = xcalloc(1, sizeof *shard);

	shard->all = all;
	shard->timer = timer_new(all->base, on_timer, shard);
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

struct multi *multi_new(struct event_base *base, multi_over_fn *over, multi_acted_fn *acted,
			void *owner)
{
	struct multi *multi = xcalloc(1, sizeof *multi);

	multi->base = base;
	multi->over = over;
	multi->acted = acted;
	multi->owner = owner;
	SLIST_INIT(&multi->spare);
	multi->shards[0] = shard_new(multi);
	if (!multi->shards[0]) {
		multi_free(multi);
		return NULL;
	}
	multi->count = 1;
	return multi;
}

void multi_free(struct multi *multi)
{
	struct socket_watch *watch;

	if (!multi)
		return;
	for (size_t i = 0; i < multi->count; i++)
		shard_free(multi->shards[i]);
	while ((watch = SLIST_FIRST(&multi->spare))) {
		SLIST_REMOVE_HEAD(&multi->spare, entry);
		event_free(watch->event);
		free(watch);
	}
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
	grown = shard_new(multi);
	if (!grown)
		return least;
	return multi->shards[multi->count++] = grown;
}

struct shard *multi_add(struct multi *multi, CURL *easy)
{
	struct shard *shard = least_loaded(multi);

	shard->transfers++;
	curl_check_multi(curl_multi_add_handle(shard->multi, easy));
	return shard;
}

void multi_remove(struct shard *shard, CURL *easy)
{
	shard->transfers--;
	curl_multi_remove_handle(shard->multi, easy);
}

bool multi_is_acting(const struct multi *multi)
{
	return multi->acting;
}

/* Lets libcurl act, then takes up what it finished: nothing of ours runs inside of it. */
static void shard_act(struct shard *shard, curl_socket_t fd, int ready)
{
	struct multi *all = shard->all;
	CURLMsg *message;
	int count;

	all->acting = true;
	curl_check_multi(curl_multi_socket_action(shard->multi, fd, ready, &count));
	while ((message = curl_multi_info_read(shard->multi, &count)))
		all->over(message->easy_handle, message->data.result);
	all->acting = false;
	all->acted(all->owner);
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

static void on_timer(void *arg)
{
	shard_act(arg, CURL_SOCKET_TIMEOUT, 0);
}
