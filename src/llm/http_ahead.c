/*
 * A connection that is made before there is a request for it, by a request that asks nothing.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "llm/http_private.h"

bool http_has_connected(const struct http_transfer *transfer, CURLcode code)
{
	return transfer->silent && transfer->asked && code == CURLE_BAD_FUNCTION_ARGUMENT;
}

/* What came of the connection that was made ahead is the request's, but an old failure. */
static void follow(struct http_transfer *transfer, struct http *http)
{
	struct http_transfer *ahead = take_pointer(&http->ahead);

	if (ahead->failed && clock_ms() - http->ahead_ms < HTTP_CONNECT_MS) {
		http_transfer_detach(transfer);
		transfer->over = transfer->failed = true;
		transfer->hopeless = ahead->hopeless;
		transfer->error = ahead->error;
		http_transfer_post(transfer);
	} else {
		http_transfer_attach(transfer);
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

bool http_wait_for_ahead(struct http_transfer *transfer)
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

void http_connect(struct http *http, const char *url)
{
	struct http_request request = {
		.url = url,
		.headers = (const char *const[]){NULL},
		.deadline = clock_ms() + 2 * HTTP_CONNECT_MS, /* libcurl's own limit comes first */
		.idle_ms = INT64_MAX,
	};

	if (http->ahead)
		return;
	http->ahead_ms = 0;
	http->ahead = http_transfer_new(http, &request, NULL, NULL, on_connected, http);
	http->ahead->silent = http->ahead->status_told = true;
	easy_ask_nothing(http->ahead->easy, true);
	http_transfer_attach(http->ahead);
}
