#include "llm/http.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "llm/multi.h"

enum { CONNECT_MS = 5000 };

struct http {
	struct event_base *base; /* lent */
	struct multi *multi;     /* owned */
};

struct http_transfer {
	struct shard *shard;        /* lent: where libcurl has it */
	CURL *easy;                 /* owned */
	struct curl_slist *headers; /* owned */
	struct evbuffer *body;      /* owned: libcurl may send it twice, so it stays to the end */
	struct evbuffer *received;  /* owned: what the owner has not drained yet */
	struct event *post;         /* owned: the next callback is due */
	struct event *watch;        /* owned: deadline and silence */
	int64_t deadline, idle_ms, moved_ms;
	curl_off_t uploaded; /* when last looked at */
	size_t size, max_size;
	bool attached; /* the multi handle knows it */
	bool status_told, fresh, over, failed;
	struct error error; /* if failed */

	http_status_fn *on_status;
	http_data_fn *on_data;
	http_done_fn *on_done;
	void *owner; /* lent */
};

/* "http://127.0.0.1:11434", without the user and password that a URL may hold. */
static void transfer_origin(const struct http_transfer *transfer, char *out, size_t size)
{
	char *url = NULL, *scheme = NULL, *host = NULL, *port = NULL;
	CURLU *parsed = curl_url();

	curl_easy_getinfo(transfer->easy, CURLINFO_EFFECTIVE_URL, &url);
	if (parsed && url && !curl_url_set(parsed, CURLUPART_URL, url, 0)) {
		curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0);
		curl_url_get(parsed, CURLUPART_HOST, &host, 0);
		curl_url_get(parsed, CURLUPART_PORT, &port, 0);
	}
	if (scheme && host)
		snprintf(out, size, "%s://%s%s%s", scheme, host, port ? ":" : "", port ? port : "");
	else
		snprintf(out, size, "the provider");
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(parsed);
}

static const char *transfer_os_reason(const struct http_transfer *transfer, CURLcode code)
{
	long number = 0;

	curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &number);
	return number ? strerror((int)number) : curl_easy_strerror(code);
}

static void transfer_explain(struct http_transfer *transfer, CURLcode code)
{
	struct error *err = &transfer->error;
	char origin[300];

	transfer_origin(transfer, origin, sizeof origin);
	if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY)
		error_set(err, ERROR_NETWORK,
			  "cannot reach %s: no such host; check the base URL and the network",
			  origin);
	else if (code == CURLE_COULDNT_CONNECT)
		error_set(err, ERROR_NETWORK, "cannot reach %s: %s; is the server running?", origin,
			  transfer_os_reason(transfer, code));
	else if (code == CURLE_OPERATION_TIMEDOUT)
		error_set(err, ERROR_NETWORK,
			  "cannot reach %s: no connection within %d s; is the server running?",
			  origin, CONNECT_MS / 1000);
	else if (code == CURLE_PEER_FAILED_VERIFICATION)
		error_set(err, ERROR_NETWORK,
			  "the certificate of %s is not trusted; check the base URL and the "
			  "system's certificates",
			  origin);
	else if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
		error_set(err, ERROR_USAGE, "%s: %s; check the base URL", origin,
			  curl_easy_strerror(code));
	else if (code == CURLE_WRITE_ERROR)
		error_set(err, ERROR_BAD_REPLY, "the answer of %s is larger than %zu bytes", origin,
			  transfer->max_size);
	else
		error_set(err, ERROR_NETWORK, "the connection to %s broke: %s", origin,
			  curl_easy_strerror(code));
}

static void transfer_detach(struct http_transfer *transfer)
{
	if (!transfer->attached)
		return;
	transfer->attached = false;
	multi_remove(transfer->shard, transfer->easy);
	event_del(transfer->watch);
}

static void transfer_post(struct http_transfer *transfer)
{
	event_active(transfer->post, EV_TIMEOUT, 0);
}

static void transfer_end(struct http_transfer *transfer, CURLcode code)
{
	transfer_detach(transfer);
	transfer->over = true;
	if (code) {
		transfer->failed = true;
		transfer_explain(transfer, code);
	}
	transfer_post(transfer);
}

static void on_over(CURL *easy, CURLcode code)
{
	struct http_transfer *transfer;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
	transfer_end(transfer, code);
}

struct http *http_new(struct event_base *base, struct error *err)
{
	struct http *http;

	if (curl_global_init(CURL_GLOBAL_DEFAULT)) {
		error_set(err, ERROR_INTERNAL, "libcurl does not start");
		return NULL;
	}
	http = xcalloc(1, sizeof *http);
	http->base = base;
	http->multi = multi_new(base, on_over);
	if (http->multi)
		return http;
	error_set(err, ERROR_INTERNAL, "libcurl does not start");
	http_free(http);
	return NULL;
}

void http_free(struct http *http)
{
	if (!http)
		return;
	multi_free(http->multi);
	free(http);
	curl_global_cleanup();
}

static size_t on_curl_write(char *bytes, size_t one, size_t size, void *arg)
{
	struct http_transfer *transfer = arg;

	(void)one;
	if (size > transfer->max_size - transfer->size)
		return 0;
	evbuffer_add(transfer->received, bytes, size);
	transfer->size += size;
	transfer->moved_ms = clock_ms();
	transfer->fresh = true;
	transfer_post(transfer);
	return size;
}

/* One callback at a time, as the last thing done here: the owner may free the transfer in it. */
static void on_post(evutil_socket_t fd, short what, void *arg)
{
	struct http_transfer *transfer = arg;

	(void)fd;
	(void)what;
	if (!transfer->status_told && (transfer->fresh || !transfer->failed)) {
		long status = 0;

		curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
		transfer->status_told = true;
		transfer_post(transfer);
		transfer->on_status(transfer->owner, transfer, (int)status);
	} else if (transfer->fresh) {
		transfer->fresh = false;
		if (transfer->over)
			transfer_post(transfer);
		transfer->on_data(transfer->owner, transfer, transfer->received);
	} else if (transfer->over) {
		transfer->over = false;
		transfer->on_done(transfer->owner, transfer,
				  transfer->failed ? &transfer->error : NULL);
	}
}

static void transfer_watch(struct http_transfer *transfer, int64_t now)
{
	int64_t left = transfer->deadline - now, quiet = now - transfer->moved_ms;
	struct timeval wait;

	if (transfer->idle_ms - quiet < left)
		left = transfer->idle_ms - quiet;
	wait = clock_timeval(left);
	event_add(transfer->watch, &wait);
}

/* The timer is not moved at every byte: it looks, when it fires, whether it fired too early. */
static void on_watch(evutil_socket_t fd, short what, void *arg)
{
	struct http_transfer *transfer = arg;
	int64_t now = clock_ms();
	curl_off_t uploaded = 0;
	char origin[300];

	(void)fd;
	(void)what;
	curl_easy_getinfo(transfer->easy, CURLINFO_SIZE_UPLOAD_T, &uploaded);
	if (uploaded != transfer->uploaded)
		transfer->moved_ms = now;
	transfer->uploaded = uploaded;
	if (now < transfer->deadline && now - transfer->moved_ms < transfer->idle_ms) {
		transfer_watch(transfer, now);
		return;
	}
	transfer_origin(transfer, origin, sizeof origin);
	transfer->failed = true;
	if (now >= transfer->deadline)
		error_set(&transfer->error, ERROR_TIMEOUT,
			  "%s had not finished its answer when the time for the call was over",
			  origin);
	else
		error_set(&transfer->error, ERROR_TIMEOUT, "%s sent nothing for %" PRId64 " ms",
			  origin, transfer->idle_ms);
	transfer_end(transfer, CURLE_OK);
}

static void *must(void *allocated)
{
	if (!allocated)
		abort();
	return allocated;
}

static struct curl_slist *headers_copy(const char *const *headers)
{
	/* Without it libcurl waits up to a second for "100 Continue" before larger bodies. */
	struct curl_slist *list = must(curl_slist_append(NULL, "Expect:"));

	while (*headers)
		list = must(curl_slist_append(list, *headers++));
	return list;
}

/* One of them may hold a key. */
static void headers_free(struct curl_slist *list)
{
	for (struct curl_slist *each = list; each; each = each->next)
		explicit_bzero(each->data, strlen(each->data));
	curl_slist_free_all(list);
}

static void transfer_set_body(struct http_transfer *transfer)
{
	CURL *easy = transfer->easy;
	size_t size = evbuffer_get_length(transfer->body);
	const unsigned char *body = evbuffer_pullup(transfer->body, -1);

	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body ? (const char *)body : "");
}

static void transfer_configure(struct http_transfer *transfer, const char *url)
{
	CURL *easy = transfer->easy;

	curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	/* libcurl 7.88 loses requests on reused HTTP/2 connections; and we need no multiplexing. */
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	/* A cancelled transfer must not wait for the resolver's thread. */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "rlmd/" RLMD_VERSION);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
	if (transfer->body)
		transfer_set_body(transfer);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_curl_write);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
}

struct http_transfer *http_start(struct http *http, struct http_request *request,
				 http_status_fn *on_status, http_data_fn *on_data,
				 http_done_fn *on_done, void *owner)
{
	struct http_transfer *transfer = xcalloc(1, sizeof *transfer);

	transfer->easy = must(curl_easy_init());
	transfer->headers = headers_copy(request->headers);
	transfer->body = take_pointer(&request->body);
	transfer->received = evbuffer_new();
	transfer->post = event_new(http->base, -1, 0, on_post, transfer);
	transfer->watch = evtimer_new(http->base, on_watch, transfer);
	transfer->deadline = request->deadline;
	transfer->idle_ms = request->idle_ms;
	transfer->moved_ms = clock_ms();
	transfer->max_size = request->max_size;
	transfer->on_status = on_status;
	transfer->on_data = on_data;
	transfer->on_done = on_done;
	transfer->owner = owner;

	transfer_configure(transfer, request->url);
	transfer->attached = true;
	transfer->shard = multi_add(http->multi, transfer->easy);
	transfer_watch(transfer, transfer->moved_ms);
	return transfer;
}

void http_transfer_free(struct http_transfer *transfer)
{
	if (!transfer)
		return;
	transfer_detach(transfer);
	curl_easy_cleanup(transfer->easy);
	headers_free(transfer->headers);
	event_free(transfer->post);
	event_free(transfer->watch);
	evbuffer_free(transfer->received);
	if (transfer->body)
		evbuffer_free(transfer->body);
	free(transfer);
}

const char *http_header(const struct http_transfer *transfer, const char *name)
{
	struct curl_header *header;

	if (curl_easy_header(transfer->easy, name, 0, CURLH_HEADER, -1, &header))
		return NULL;
	return header->value;
}

bool http_sent(const struct http_transfer *transfer)
{
	long size = 0;

	curl_easy_getinfo(transfer->easy, CURLINFO_REQUEST_SIZE, &size);
	return size > 0;
}
