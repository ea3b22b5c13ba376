#include "net/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/timer.h"
#include "net/curl_check.h"
#include "net/easy.h"
#include "net/http_error.h"
#include "net/multi.h"
#include "net/sockets.h"

/*
 * Bytes: the most that a callback is given, some hundred deltas, or a few milliseconds of parsing
 * where they are as short as can be. libcurl reads a fast server's bytes, 16 KiB at once, until it
 * is told to hold, and copies the piece that it may not hand over.
 */
enum { UNREAD_MAX = 4 * CURL_MAX_WRITE_SIZE };

enum { CONNECT_MS = 5000, LIBCURL_8 = 0x080000, PROXY_AUTH = 407 };

struct http {
	struct event_base *base; /* lent */
	struct multi *multi;     /* owned */
	struct easy_pool *pool;  /* owned */
	struct sockets *sockets; /* owned */

	struct http_transfer *due; /* lent: told once libcurl has acted; NULL: none */

	struct http_transfer *ahead;   /* owned: a connection for the next request; NULL: none */
	struct http_transfer *waiting; /* lent: that request; NULL: none yet */
	int64_t ahead_ms;              /* when it was made, or failed; 0: not yet */
};

struct http_transfer {
	struct http *http;    /* lent */
	struct shard *shard;  /* lent: where libcurl has it */
	struct easy *easy;    /* owned */
	struct body *body;    /* owned: libcurl reads it from here */
	struct bytes unread;  /* owned: of the answer, which its owner was not given yet */
	size_t received, max; /* of all its bytes; of what may come */
	bool held;            /* libcurl has more, and waits for transfer_resume() */
	struct timer *post;   /* owned: a callback is due, and no act of libcurl's ends before it */
	struct timer *watch;  /* owned: deadline and silence */
	int64_t deadline, idle_ms, moved_ms;
	curl_off_t uploaded; /* when last looked at */
	long port;           /* of whom was connected to; 0: not known */
	int socket_errno;    /* why the last socket could not be made; 0: it could */
	long size_before;    /* bytes sent before the request: to a proxy */
	bool attached;       /* the multi handle knows it */
	bool asked;          /* the request was on its way */
	bool lost;           /* it was to be sent once more */
	bool unclean;        /* it was to be sent where an answer was waiting already */
	bool silent;         /* it asks nothing */
	bool status_told, fresh, over, failed, hopeless;
	bool *gone;              /* lent: set where the owner frees it in a callback */
	struct rlmd_error error; /* if failed */

	http_status_fn *on_status;
	http_data_fn *on_data;
	http_done_fn *on_done;
	void *owner; /* lent */
};

static void transfer_detach(struct http_transfer *transfer)
{
	timer_stop(transfer->watch);
	if (!transfer->attached)
		return;
	transfer->attached = false;
	multi_remove(transfer->shard, transfer->easy->curl);
}

static bool transfer_proxied(const struct http_transfer *transfer)
{
	long port = 0;

	if (transfer->port)
		return route_is_proxied(&transfer->easy->route, transfer->port);
	/* A connection from before. Where none came about, libcurl 8 says the server's port. */
	curl_easy_getinfo(transfer->easy->curl, CURLINFO_PRIMARY_PORT, &port);
	return route_is_proxied(&transfer->easy->route, port);
}

static void transfer_attach(struct http_transfer *transfer)
{
	transfer->attached = true;
	transfer->shard = multi_add(transfer->http->multi, transfer->easy->curl);
}

/* Something is to be told. One transfer, which nearly always is all that has news, needs no turn of
 * the loop for it. */
static void transfer_post(struct http_transfer *transfer)
{
	struct http *http = transfer->http;

	if (multi_is_acting(http->multi) && (!http->due || http->due == transfer))
		http->due = transfer;
	else
		timer_post(transfer->post);
}

/* Whether one that asks nothing has ended as it should. */
static bool has_connected(const struct http_transfer *transfer, CURLcode code)
{
	return transfer->silent && transfer->asked && code == CURLE_BAD_FUNCTION_ARGUMENT;
}

static void transfer_end(struct http_transfer *transfer, CURLcode code)
{
	struct http_error failed = {
		.easy = transfer->easy->curl,
		.code = code,
		.words = transfer->easy->words,
		.route = &transfer->easy->route,
		.proxied = transfer_proxied(transfer),
		.sent = http_sent(transfer),
		.lost = transfer->lost,
		.unclean = transfer->unclean,
		.max_size = transfer->max,
		.connect_ms = CONNECT_MS,
		.socket_errno = transfer->socket_errno,
	};

	transfer_detach(transfer);
	transfer->over = true;
	if (code && !has_connected(transfer, code)) {
		transfer->failed = true;
		transfer->hopeless = http_error_explain(&failed, &transfer->error);
	}
	transfer_post(transfer);
}

static void on_over(CURL *easy, CURLcode code)
{
	struct http_transfer *transfer;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
	transfer_end(transfer, code);
}

static void tell_status(struct http_transfer *transfer)
{
	long status = 0;

	curl_easy_getinfo(transfer->easy->curl, CURLINFO_RESPONSE_CODE, &status);
	transfer->status_told = true;
	transfer->on_status(transfer->owner, transfer, (int)status);
}

static void tell_end(struct http_transfer *transfer)
{
	transfer->over = false;
	transfer->on_done(transfer->owner, transfer, transfer->failed ? &transfer->error : NULL);
}

/* Not from inside of libcurl, whose write callback may come before this returns. */
static void transfer_resume(struct http_transfer *transfer)
{
	if (!transfer->held)
		return;
	transfer->held = false;
	curl_check(curl_easy_pause(transfer->easy->curl, CURLPAUSE_CONT));
}

/* Tells the owner its events, one after the other; the owner may free the transfer in each. */
static void transfer_tell(struct http_transfer *transfer)
{
	bool gone = false;

	transfer->gone = &gone;
	if (!transfer->status_told && (transfer->fresh || !transfer->failed))
		tell_status(transfer);
	if (!gone && transfer->fresh) {
		transfer->fresh = false;
		transfer->on_data(transfer->owner, transfer, bytes_text(&transfer->unread));
		if (!gone)
			bytes_cut(&transfer->unread, 0);
	}
	if (!gone && transfer->over)
		tell_end(transfer);
	if (gone)
		return;
	transfer->gone = NULL;
	if (transfer->attached) /* may have more come at once, which is for another turn */
		transfer_resume(transfer);
}

static void on_post(void *arg)
{
	transfer_tell(arg);
}

static void on_acted(void *owner)
{
	struct http *http = owner;
	struct http_transfer *due = take_pointer(&http->due);

	if (due)
		transfer_tell(due);
}

struct http *http_new(struct event_base *base, struct rlmd_error *err)
{
	struct http *http;

	if (curl_global_init(CURL_GLOBAL_DEFAULT)) {
		error_set(err, RLMD_ERROR_INTERNAL, "libcurl does not start");
		return NULL;
	}
	http = xcalloc(1, sizeof *http);
	http->base = base;
	http->pool = easy_pool_new();
	http->sockets = sockets_new();
	http->multi = multi_new(base, on_over, on_acted, http);
	if (http->multi)
		return http;
	error_set(err, RLMD_ERROR_INTERNAL, "libcurl does not start");
	http_free(http);
	return NULL;
}

void http_free(struct http *http)
{
	if (!http)
		return;
	http_transfer_free(take_pointer(&http->ahead));
	multi_free(http->multi);
	easy_pool_free(http->pool);
	sockets_free(http->sockets);
	free(http);
	curl_global_cleanup();
}

void http_cut(struct http *http)
{
	sockets_cut(http->sockets);
}

/* Notes to whom: a message about a connection that fails should name the right one. */
static curl_socket_t on_curl_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct http_transfer *transfer = arg;
	char port[NI_MAXSERV];
	int fd;

	(void)purpose;
	if (!getnameinfo(&address->addr, address->addrlen, NULL, 0, port, sizeof port,
			 NI_NUMERICSERV))
		transfer->port = strtol(port, NULL, 10);
	fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	transfer->socket_errno = fd < 0 ? errno : 0;
	if (fd >= 0)
		sockets_add(transfer->http->sockets, fd);
	return fd;
}

static int on_curl_close(void *arg, curl_socket_t fd)
{
	struct http *http = arg;

	sockets_remove(http->sockets, fd);
	return close(fd);
}

/* Whether libcurl is about to take what is no answer to this request for one. */
static bool finds_answer(const struct http_transfer *transfer, int local_port)
{
	long made = 0;

	curl_easy_getinfo(transfer->easy->curl, CURLINFO_NUM_CONNECTS, &made);
	return !made && sockets_unread(transfer->http->sockets, local_port);
}

/*
 * A connection is there, and the request is next. libcurl comes here again where a kept connection
 * died before the first byte of the answer. The server may have worked on what was sent, so that is
 * an attempt, and another one is for the caller to make; unless nothing had left.
 */
static int on_curl_ask(void *arg, char *ip, char *local_ip, int port, int local_port)
{
	struct http_transfer *transfer = arg;

	(void)ip;
	(void)local_ip;
	(void)port;
	if (transfer->silent && !strncmp(transfer->easy->route.origin, "https:", 6))
		sockets_greet(transfer->http->sockets, local_port);
	transfer->lost = http_sent(transfer);
	transfer->unclean = !transfer->lost && finds_answer(transfer, local_port);
	if (transfer->lost || transfer->unclean)
		return CURL_PREREQFUNC_ABORT;
	transfer->asked = true;
	curl_easy_getinfo(transfer->easy->curl, CURLINFO_REQUEST_SIZE, &transfer->size_before);
	return CURL_PREREQFUNC_OK;
}

static size_t on_curl_write(char *bytes, size_t one, size_t size, void *arg)
{
	struct http_transfer *transfer = arg;

	(void)one;
	if (size > transfer->max - transfer->received)
		return 0;
	transfer->held = transfer->unread.size + size > UNREAD_MAX;
	if (transfer->held)
		return CURL_WRITEFUNC_PAUSE;
	bytes_add(&transfer->unread, text_from(bytes, size));
	transfer->received += size;
	if (transfer->fresh) /* of several pieces in a row, one has to be told */
		return size;
	transfer->moved_ms = clock_ms();
	transfer->fresh = true;
	transfer_post(transfer);
	return size;
}

static void transfer_watch(struct http_transfer *transfer, int64_t now)
{
	int64_t left = transfer->deadline - now, quiet = now - transfer->moved_ms;

	if (transfer->idle_ms - quiet < left)
		left = transfer->idle_ms - quiet;
	timer_start(transfer->watch, left);
}

/* The timer is not moved at every byte: it looks, when it fires, whether it fired too early. */
static void on_watch(void *arg)
{
	struct http_transfer *transfer = arg;
	int64_t now = clock_ms();
	const char *origin = transfer->easy->route.origin;
	curl_off_t uploaded = 0;

	curl_easy_getinfo(transfer->easy->curl, CURLINFO_SIZE_UPLOAD_T, &uploaded);
	if (uploaded != transfer->uploaded)
		transfer->moved_ms = now;
	transfer->uploaded = uploaded;
	if (now < transfer->deadline && now - transfer->moved_ms < transfer->idle_ms) {
		transfer_watch(transfer, now);
		return;
	}
	transfer->failed = true;
	if (now >= transfer->deadline)
		error_set(&transfer->error, RLMD_ERROR_TIMEOUT,
			  "%s had not finished its answer when the time for the call was over",
			  origin);
	else
		error_set(&transfer->error, RLMD_ERROR_TIMEOUT,
			  "%s sent nothing for %" PRId64 " ms", origin, transfer->idle_ms);
	transfer_end(transfer, CURLE_OK);
}

static size_t on_curl_read(char *bytes, size_t one, size_t size, void *arg)
{
	struct http_transfer *transfer = arg;

	(void)one;
	return body_read(transfer->body, bytes, size);
}

/* Asked for where a kept connection had died before anything was sent. */
static int on_curl_seek(void *arg, curl_off_t offset, int origin)
{
	struct http_transfer *transfer = arg;

	if (offset || origin != SEEK_SET)
		return CURL_SEEKFUNC_CANTSEEK;
	body_rewind(transfer->body);
	return CURL_SEEKFUNC_OK;
}

/* Without POSTFIELDS libcurl asks for each piece; with them a short request leaves as one. */
static void transfer_set_body(struct http_transfer *transfer)
{
	CURL *easy = transfer->easy->curl;

	curl_set(easy, CURLOPT_POST, 1L);
	curl_set(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body_size(transfer->body));
	curl_set(easy, CURLOPT_POSTFIELDS, body_whole(transfer->body).bytes);
	curl_set(easy, CURLOPT_READFUNCTION, on_curl_read);
	curl_set(easy, CURLOPT_READDATA, transfer);
	curl_set(easy, CURLOPT_SEEKFUNCTION, on_curl_seek);
	curl_set(easy, CURLOPT_SEEKDATA, transfer);
}

/* Sets the options of this one request. */
static void transfer_configure(struct http_transfer *transfer)
{
	CURL *easy = transfer->easy->curl;

	curl_set(easy, CURLOPT_PRIVATE, transfer);
	if (transfer->body)
		transfer_set_body(transfer);
	else
		curl_set(easy, CURLOPT_HTTPGET, 1L);
	curl_set(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_set(easy, CURLOPT_OPENSOCKETFUNCTION, on_curl_open);
	curl_set(easy, CURLOPT_OPENSOCKETDATA, transfer);
	curl_set(easy, CURLOPT_CLOSESOCKETFUNCTION, on_curl_close);
	curl_set(easy, CURLOPT_CLOSESOCKETDATA, transfer->http);
	curl_set(easy, CURLOPT_PREREQFUNCTION, on_curl_ask);
	curl_set(easy, CURLOPT_PREREQDATA, transfer);
	curl_set(easy, CURLOPT_WRITEFUNCTION, on_curl_write);
	curl_set(easy, CURLOPT_WRITEDATA, transfer);
}

/* As http_start(), but for libcurl, which does not know it yet. */
static struct http_transfer *transfer_new(struct http *http, struct http_request *request,
					  http_status_fn *on_status, http_data_fn *on_data,
					  http_done_fn *on_done, void *owner)
{
	struct http_transfer *transfer = xcalloc(1, sizeof *transfer);

	transfer->http = http;
	transfer->easy = easy_pool_take(http->pool, request->url, request->headers);
	transfer->body = take_pointer(&request->body);
	transfer->max = request->max_size;
	transfer->post = timer_new(http->base, on_post, transfer);
	transfer->watch = timer_new(http->base, on_watch, transfer);
	timer_make_urgent(transfer->watch);
	transfer->deadline = request->deadline;
	transfer->idle_ms = request->idle_ms;
	transfer->moved_ms = clock_ms();
	transfer->on_status = on_status;
	transfer->on_data = on_data;
	transfer->on_done = on_done;
	transfer->owner = owner;

	transfer_configure(transfer);
	curl_set(transfer->easy->curl, CURLOPT_FRESH_CONNECT, (long)request->fresh);
	transfer_watch(transfer, transfer->moved_ms);
	return transfer;
}

void http_transfer_free(struct http_transfer *transfer)
{
	if (!transfer)
		return;
	if (transfer->gone)
		*transfer->gone = true;
	if (transfer->http->due == transfer)
		transfer->http->due = NULL;
	if (transfer->http->waiting == transfer)
		transfer->http->waiting = NULL;
	transfer_detach(transfer);
	if (transfer->silent)
		easy_ask_nothing(transfer->easy, false);
	easy_pool_give(transfer->http->pool, transfer->easy);
	timer_free(transfer->post);
	timer_free(transfer->watch);
	bytes_done(&transfer->unread);
	body_free(transfer->body);
	free(transfer);
}

/* --- a connection that is made before there is a request for it ------------------------- */

/* The request takes over the result of the connection that was made ahead, unless that is an old
 * failure. */
static void follow(struct http_transfer *transfer, struct http *http)
{
	struct http_transfer *ahead = take_pointer(&http->ahead);

	if (ahead->failed && clock_ms() - http->ahead_ms < CONNECT_MS) {
		transfer_detach(transfer);
		transfer->over = transfer->failed = true;
		transfer->hopeless = ahead->hopeless;
		transfer->error = ahead->error;
		transfer_post(transfer);
	} else {
		transfer_attach(transfer);
	}
	http_transfer_free(ahead);
}

static void on_connected(void *owner, struct http_transfer *ahead, const struct rlmd_error *err)
{
	struct http *http = owner;
	struct http_transfer *waiting = take_pointer(&http->waiting);

	(void)ahead;
	(void)err;
	http->ahead_ms = clock_ms();
	if (waiting)
		follow(waiting, http);
}

/* Whether the connection that was made ahead is to decide about this transfer, now or when it is
 * there. False: there is none for it. */
static bool wait_for_ahead(struct http_transfer *transfer)
{
	struct http *http = transfer->http;

	if (!http->ahead || http->waiting)
		return false;
	if (http->ahead_ms)
		follow(transfer, http);
	else
		http->waiting = transfer;
	return true;
}

/*
 * libcurl 8 uses no connection on which something has come meanwhile. With TLS 1.3 that is so on
 * each that was made ahead, for the server's tickets follow its handshake: there would be two
 * connections for one.
 */
static bool is_in_vain(const char *url)
{
	return curl_version_info(CURLVERSION_NOW)->version_num >= LIBCURL_8 &&
	       !strncasecmp(url, "https:", 6);
}

void http_connect(struct http *http, const char *url)
{
	struct http_request request = {
		.url = url,
		.headers = (const char *const[]){NULL},
		.deadline = clock_ms() + 2 * CONNECT_MS, /* libcurl's own limit comes first */
		.idle_ms = INT64_MAX,
	};

	if (http->ahead || is_in_vain(url))
		return;
	http->ahead_ms = 0;
	http->ahead = transfer_new(http, &request, NULL, NULL, on_connected, http);
	http->ahead->silent = http->ahead->status_told = true;
	easy_ask_nothing(http->ahead->easy, true);
	transfer_attach(http->ahead);
}

struct http_transfer *http_start(struct http *http, struct http_request *request,
				 http_status_fn *on_status, http_data_fn *on_data,
				 http_done_fn *on_done, void *owner)
{
	struct http_transfer *transfer = transfer_new(http, request, on_status, on_data, on_done,
						      owner);

	if (!wait_for_ahead(transfer))
		transfer_attach(transfer);
	return transfer;
}

const char *http_header(const struct http_transfer *transfer, const char *name)
{
	struct curl_header *header;

	if (curl_easy_header(transfer->easy->curl, name, 0, CURLH_HEADER, -1, &header))
		return NULL;
	return header->value;
}

bool http_sent(const struct http_transfer *transfer)
{
	long size = 0;

	curl_easy_getinfo(transfer->easy->curl, CURLINFO_REQUEST_SIZE, &size);
	return transfer->asked && size != transfer->size_before;
}

bool http_lost(const struct http_transfer *transfer)
{
	return transfer->lost || transfer->unclean;
}

bool http_hopeless(const struct http_transfer *transfer)
{
	return transfer->hopeless;
}

bool http_refused_by_proxy(const struct http_transfer *transfer, int status, struct rlmd_error *err)
{
	if (status != PROXY_AUTH || !transfer_proxied(transfer))
		return false;
	http_error_at_proxy(&transfer->easy->route, err);
	return true;
}
