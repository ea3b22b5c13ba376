#include "net/http.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "server.h"

enum { HANGS_MS = 100000 };

static struct event_base *base;
static struct server *server;
static struct http *http;

/* One request and what came of it. */
struct asked {
	struct http_transfer *transfer;
	struct evbuffer *got;
	struct rlmd_error error;
	int status;
	size_t datas, dones, most; /* most: bytes in one callback */
	bool over, failed;
	bool free_in_status, free_in_data, fresh;
	bool quoted; /* the body is a text, made while it is sent */
	size_t *finished;
	struct event *turn; /* made due by the status; NULL: none */
};

static void ask_free(struct asked *asked)
{
	http_transfer_free(asked->transfer);
	asked->transfer = NULL;
}

static void on_status(void *owner, struct http_transfer *transfer, int status)
{
	struct asked *asked = owner;

	assert_ptr_equal(transfer, asked->transfer);
	assert_int_equal(asked->status, 0);
	assert_int_equal(asked->datas, 0);
	asked->status = status;
	if (asked->turn)
		event_active(asked->turn, 0, 0);
	if (asked->free_in_status)
		ask_free(asked);
}

static void on_data(void *owner, struct http_transfer *transfer, struct rlmd_text data)
{
	struct asked *asked = owner;

	assert_ptr_equal(transfer, asked->transfer);
	assert_int_not_equal(asked->status, 0);
	assert_false(asked->over);
	asked->datas++;
	if (asked->most < data.size)
		asked->most = data.size;
	evbuffer_add(asked->got, data.bytes, data.size);
	if (asked->free_in_data)
		ask_free(asked);
}

static void on_done(void *owner, struct http_transfer *transfer, const struct rlmd_error *err)
{
	struct asked *asked = owner;

	assert_ptr_equal(transfer, asked->transfer);
	assert_false(asked->over);
	asked->over = true;
	asked->failed = err;
	if (err)
		asked->error = *err;
	if (asked->finished)
		++*asked->finished;
}

static void ask_url(struct asked *asked, const char *url, const char *body, int64_t deadline_ms,
		    int64_t idle_ms, size_t max_size)
{
	static const char *const headers[] = {"Content-Type: application/json", "X-Test: 1", NULL};
	struct http_request request = {
		.url = url,
		.headers = headers,
		.body = body_new(),
		.deadline = clock_ms() + deadline_ms,
		.idle_ms = idle_ms,
		.max_size = max_size,
		.fresh = asked->fresh,
	};

	if (asked->quoted)
		body_quote(request.body, text_of(body));
	else
		body_add(request.body, body);
	assert_true(body_measure(request.body, SIZE_MAX));
	asked->got = evbuffer_new();
	asked->transfer = http_start(http, &request, on_status, on_data, on_done, asked);
	assert_null(request.body);
	assert_false(asked->over);
}

static void ask(struct asked *asked, const char *body)
{
	ask_url(asked, server->url, body, HANGS_MS, HANGS_MS, 1 << 20);
}

static void asked_done(struct asked *asked)
{
	ask_free(asked);
	evbuffer_free(asked->got);
}

static int setup(void **state)
{
	(void)state;
	base = event_base_new();
	server = server_new(base);
	server->lists = true;
	http = http_new(base, NULL);
	return !http;
}

static int teardown(void **state)
{
	(void)state;
	http_free(http);
	server_free(server);
	event_base_free(base);
	return 0;
}

static void assert_got(struct asked *asked, const char *expected)
{
	struct rlmd_text text = text_from(evbuffer_pullup(asked->got, -1),
					  evbuffer_get_length(asked->got));

	assert_true(text_equal(text, expected));
}

/* The request has our headers and no others that matter; status, body and headers come back. */
static void test_post(void **state)
{
	struct asked asked = {0};

	(void)state;
	server_json(server, 418, "Retry-After: 3\r\n", "{\"a\": 1}");
	ask(&asked, "the body");
	run_until(base, &asked.over);
	assert_false(asked.failed);
	assert_int_equal(asked.status, 418);
	assert_got(&asked, "{\"a\": 1}");
	assert_string_equal(http_header(asked.transfer, "retry-after"), "3");
	assert_null(http_header(asked.transfer, "x-absent"));
	assert_true(http_sent(asked.transfer));

	assert_true(text_starts(text_of(server->last), "POST / HTTP/1.1\r\n"));
	assert_non_null(strstr(server->last, "\r\nX-Test: 1\r\n"));
	assert_non_null(strstr(server->last, "\r\nUser-Agent: rlmd/"));
	assert_null(strstr(server->last, "Expect:"));
	assert_null(strstr(server->last, "Accept-Encoding:"));
	assert_non_null(strstr(server->last, "\r\n\r\nthe body"));
	asked_done(&asked);
}

static void on_turn(evutil_socket_t fd, short what, void *owner)
{
	struct asked *asked = owner;

	(void)fd;
	(void)what;
	assert_int_equal(asked->datas, 1);
	assert_true(asked->over);
	event_free(take_pointer(&asked->turn));
}

/* An answer that came at once is told at once: nobody else has a turn before its end. */
static void test_told_in_one_turn(void **state)
{
	struct asked asked = {0};

	(void)state;
	server_json(server, 200, "", "{}");
	asked.turn = event_new(base, -1, 0, on_turn, &asked);
	ask(&asked, "x");
	run_until(base, &asked.over);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_null(asked.turn);
	asked_done(&asked);
}

/* Bytes come as they arrive, in order, split anywhere. */
static void test_stream_split_at_every_byte(void **state)
{
	struct asked asked = {0};

	(void)state;
	server_sse(server, "data: one\n\ndata: two\n\n", 1);
	ask(&asked, "");
	run_until(base, &asked.over);
	assert_false(asked.failed);
	assert_got(&asked, "data: one\n\ndata: two\n\n");
	assert_true(asked.datas > 5);
	asked_done(&asked);
}

/* An empty answer has a status and an end, and no data. */
static void test_empty(void **state)
{
	struct asked asked = {0};

	(void)state;
	server_json(server, 200, "", "");
	ask(&asked, "");
	run_until(base, &asked.over);
	assert_int_equal(asked.status, 200);
	assert_int_equal(asked.datas, 0);
	asked_done(&asked);
}

/* A redirect is an answer like any other: a key must not follow it. */
static void test_no_redirect(void **state)
{
	struct asked asked = {0};

	(void)state;
	server_json(server, 302, "Location: /elsewhere\r\n", "");
	ask(&asked, "");
	run_until(base, &asked.over);
	assert_int_equal(asked.status, 302);
	assert_int_equal(server->requests, 1);
	asked_done(&asked);
}

/* The connection is used again: a run's turns do not pay for it each time. */
static void test_keep_alive(void **state)
{
	(void)state;
	server_json(server, 200, "", "{}");
	for (int i = 0; i < 5; i++) {
		struct asked asked = {0};

		ask(&asked, "x");
		run_until(base, &asked.over);
		asked_done(&asked);
	}
	assert_int_equal(server->requests, 5);
	assert_int_equal(server->connections, 1);
}

/* Connections that a burst opened are kept for the next one, over a lull. */
static void test_keep_alive_of_a_burst(void **state)
{
	enum { BURST = 20 };
	static const int rounds[] = {BURST, 1, 1, 1, 1, 1, BURST};
	struct asked asked[BURST];

	(void)state;
	server_json(server, 200, "", "{}");
	for (size_t round = 0; round < sizeof rounds / sizeof *rounds; round++) {
		size_t finished = 0;

		for (int i = 0; i < rounds[round]; i++) {
			asked[i] = (struct asked){.finished = &finished};
			ask(&asked[i], "x");
		}
		run_until_count(base, &finished, (size_t)rounds[round]);
		for (int i = 0; i < rounds[round]; i++)
			asked_done(&asked[i]);
	}
	assert_int_equal(server->requests, 2 * BURST + 5);
	assert_int_equal(server->connections, BURST);
}

/* A kept connection that dies before its answer loses the request: libcurl would send it again,
 * to a server that has read it. Whoever asks again gets a connection of its own. */
static void test_nothing_is_sent_twice(void **state)
{
	static const struct {
		size_t size;
		bool quoted; /* so that its bytes are made while they are sent */
	} bodies[] = {{1, false}, {1000, false}, {200 << 10, false}, {200 << 10, true}};

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		size_t requests = server->requests, connections = server->connections;
		struct asked first = {.quoted = bodies[i].quoted};
		struct asked second = {.quoted = bodies[i].quoted};
		struct asked third = {.quoted = bodies[i].quoted, .fresh = true};
		char *body = xcalloc(bodies[i].size + 1, 1);

		memset(body, 'b', bodies[i].size);
		server_json(server, 200, "", "{}");
		server_answer(server, "", SERVER_CLOSE, 0);
		server_json(server, 200, "", "{}");
		ask(&first, body);
		run_until(base, &first.over);
		assert_false(first.failed);
		ask(&second, body);
		run_until(base, &second.over);
		assert_int_equal(second.error.kind, RLMD_ERROR_NETWORK);
		assert_non_null(strstr(second.error.text, "kept from an earlier request"));
		assert_true(http_sent(second.transfer));
		assert_true(http_lost(second.transfer));
		assert_false(http_hopeless(second.transfer));
		assert_int_equal(server->requests - requests, 2);
		ask(&third, body);
		run_until(base, &third.over);
		assert_false(third.failed);
		assert_int_equal(server->requests - requests, 3);
		assert_true(server->connections - connections <= 3);
		asked_done(&first);
		asked_done(&second);
		asked_done(&third);
		free(body);
	}
}

/* One that was closed while nobody used it is not used: nothing is lost. */
static void test_closed_while_idle(void **state)
{
	struct asked first = {0}, second = {0};

	(void)state;
	server_answer(server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", SERVER_CLOSE, 0);
	server_json(server, 200, "", "{}");
	ask(&first, "x");
	run_until(base, &first.over);
	run_until_count(base, &server->closed, 1);
	ask(&second, "x");
	run_until(base, &second.over);
	assert_false(first.failed || second.failed);
	assert_int_equal(server->requests, 2);
	assert_int_equal(server->connections, 2);
	asked_done(&first);
	asked_done(&second);
}

/* Bytes on a kept connection while nobody asks are no answer to the next request. */
static void test_unasked_answer(void **state)
{
	struct asked first = {0}, second = {0}, third = {0};

	(void)state;
	server_json(server, 200, "", "{}");
	ask(&first, "x");
	run_until(base, &first.over);
	server_say(server, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstale");
	ask(&second, "x");
	run_until(base, &second.over);
	if (curl_version_info(CURLVERSION_NOW)->version_num >= 0x080000) {
		assert_false(second.failed); /* libcurl itself leaves that connection alone */
		assert_int_equal(evbuffer_get_length(second.got), 2);
	} else {
		assert_true(second.failed);
		assert_int_equal(second.error.kind, RLMD_ERROR_NETWORK);
		assert_non_null(strstr(second.error.text, "that nobody had asked for"));
		assert_false(http_sent(second.transfer));
		assert_true(http_lost(second.transfer));
		assert_int_equal(server->requests, 1);
	}
	ask(&third, "x");
	run_until(base, &third.over);
	assert_false(third.failed);
	assert_int_equal(evbuffer_get_length(third.got), 2);
	assert_int_equal(server->requests, second.failed ? 2 : 3);
	assert_int_equal(server->connections, 2);
	asked_done(&first);
	asked_done(&second);
	asked_done(&third);
}

/* Bytes that are no HTTP are an answer all the same: the server may have worked. */
static void test_no_http(void **state)
{
	struct asked asked = {0};

	(void)state;
	server_answer(server, "220 mail.example.org ESMTP\r\n", SERVER_CLOSE, 0);
	ask(&asked, "x");
	run_until(base, &asked.over);
	assert_int_equal(asked.error.kind, RLMD_ERROR_BAD_REPLY);
	assert_non_null(strstr(asked.error.text, "no HTTP"));
	assert_true(http_sent(asked.transfer));
	asked_done(&asked);
}

/* Where nobody listens, the text names the host and the reason, and asks the right question. */
/* Nothing is said on it before the first request, whose connection it is. */
static void test_connected_ahead(void **state)
{
	struct asked asked = {0};

	(void)state;
	server_json(server, 200, "", "{}");
	http_connect(http, server->url);
	http_connect(http, server->url); /* there is one */
	run_until_count(base, &server->connections, 1);
	ask(&asked, "x");
	run_until(base, &asked.over);
	assert_int_equal(asked.status, 200);
	assert_memory_equal(server->last, "POST ", 5);
	assert_int_equal(server->requests, 1);
	assert_int_equal(server->connections, 1);
	asked_done(&asked);
}

/* The first request waits for it, and may be cancelled; the second one has its own. */
static void test_connecting_meanwhile(void **state)
{
	struct asked gone = {0}, one = {0}, two = {0};

	(void)state;
	server_json(server, 200, "", "{}");
	http_connect(http, server->url);
	ask(&gone, "x");
	asked_done(&gone);
	ask(&one, "x");
	ask(&two, "x");
	run_until(base, &one.over);
	run_until(base, &two.over);
	assert_int_equal(one.status, 200);
	assert_int_equal(two.status, 200);
	assert_int_equal(server->requests, 2);
	assert_int_equal(server->connections, 2);
	asked_done(&one);
	asked_done(&two);
	http_connect(http, server->url); /* nobody comes */
}

static void refused(bool ahead)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct asked asked = {0};
	char url[64], expected[128];

	assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
	getsockname(fd, (struct sockaddr *)&address, &size);
	snprintf(url, sizeof url, "http://user:pass@127.0.0.1:%d/v1", ntohs(address.sin_port));
	if (ahead)
		http_connect(http, url);
	ask_url(&asked, url, "", HANGS_MS, HANGS_MS, 1000);
	run_until(base, &asked.over);
	snprintf(expected, sizeof expected,
		 "cannot reach http://127.0.0.1:%d: Connection refused; is the server running?",
		 ntohs(address.sin_port));
	assert_int_equal(asked.error.kind, RLMD_ERROR_NETWORK);
	assert_string_equal(asked.error.text, expected);
	assert_false(http_sent(asked.transfer));
	assert_int_equal(asked.status, 0);
	close(fd);
	asked_done(&asked);
}

/* A descriptor that this machine lacks is no fault of the network. */
static void test_no_descriptor(void **state)
{
	struct asked asked = {0};
	struct rlimit before, none;
	int next = dup(STDIN_FILENO);

	(void)state;
	close(next);
	getrlimit(RLIMIT_NOFILE, &before);
	none = (struct rlimit){(rlim_t)next, before.rlim_max};
	ask_url(&asked, server->url, "", HANGS_MS, HANGS_MS, 1000);
	setrlimit(RLIMIT_NOFILE, &none);
	run_until(base, &asked.over);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(asked.error.kind, RLMD_ERROR_MACHINE);
	assert_non_null(strstr(asked.error.text, "no socket for a connection to http://127.0.0.1"));
	assert_non_null(strstr(asked.error.text, "ulimit -n"));
	asked_done(&asked);
}

static void assert_machine(const char *url, int spare)
{
	struct asked asked = {0};
	struct rlimit before, few;
	int next = dup(STDIN_FILENO);

	close(next);
	getrlimit(RLIMIT_NOFILE, &before);
	few = (struct rlimit){(rlim_t)(next + spare), before.rlim_max};
	ask_url(&asked, url, "", HANGS_MS, HANGS_MS, 1000);
	setrlimit(RLIMIT_NOFILE, &few);
	run_until(base, &asked.over);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(asked.error.kind, RLMD_ERROR_MACHINE);
	assert_non_null(strstr(asked.error.text, "ulimit -n"));
	asked_done(&asked);
}

/* Neither is one for looking up a name or for reading the certificates. */
static void test_no_descriptor_for_a_file(void **state)
{
	char *url = xasprintf("https%s", server->url + strlen("http"));

	(void)state;
	/* valgrind 3.19 says of a socketpair() beyond the limit that it was made, and closes it. */
	if (!getenv("SLOW_TOOL"))
		assert_machine("http://nobody.invalid/", 0);
	assert_machine(url, 1);
	free(url);
}

/* Ahead of the request or not, it is told in the same words. */
static void test_refused(void **state)
{
	(void)state;
	refused(false);
	refused(true);
}

/* Other protocols are not spoken, whatever the URL says. */
static void test_protocols(void **state)
{
	static const char *const urls[] = {"file:///etc/passwd", "ftp://127.0.0.1/", "http://a b/"};

	(void)state;
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		struct asked asked = {0};

		ask_url(&asked, urls[i], "", HANGS_MS, HANGS_MS, 1000);
		run_until(base, &asked.over);
		assert_int_equal(asked.error.kind, RLMD_ERROR_USAGE);
		asked_done(&asked);
	}
}

/* A connection that closes in the middle of an answer is a failure; what came before is told. */
static void test_cut(void **state)
{
	struct asked asked = {0};

	(void)state;
	server_answer(server,
		      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\ndata: half",
		      SERVER_CLOSE, 0);
	ask(&asked, "");
	run_until(base, &asked.over);
	assert_int_equal(asked.status, 200);
	assert_int_equal(asked.error.kind, RLMD_ERROR_NETWORK);
	assert_got(&asked, "data: half");
	asked_done(&asked);
}

/* Silence is noticed while bytes that trickle are not: idle time, then the deadline. */
static void test_idle_and_deadline(void **state)
{
	struct asked silent = {0}, late = {0};
	int64_t started = clock_ms();

	(void)state;
	server_answer(server, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", SERVER_HOLD, 0);
	ask_url(&silent, server->url, "", HANGS_MS, 60, 1000);
	run_until(base, &silent.over);
	assert_int_equal(silent.error.kind, RLMD_ERROR_TIMEOUT);
	assert_non_null(strstr(silent.error.text, "sent nothing for 60 ms"));
	assert_true(clock_ms() - started >= 60);

	ask_url(&late, server->url, "", 80, HANGS_MS, 1000);
	run_until(base, &late.over);
	assert_int_equal(late.error.kind, RLMD_ERROR_TIMEOUT);
	assert_non_null(strstr(late.error.text, "time for the call"));
	asked_done(&silent);
	asked_done(&late);
}

static char *text_of_size(size_t size)
{
	char *text = xcalloc(size + 1, 1);

	for (size_t i = 0; i < size; i++)
		text[i] = (char)('a' + i * i % 23);
	return text;
}

/* Of an answer that is there at once its owner gets little at a time, and all in the end. */
static void test_small_steps(void **state)
{
	enum { SIZE = 1 << 20, STEP = 64 << 10 };
	char *text = text_of_size(SIZE);
	struct asked whole = {0}, streamed = {0};

	(void)state;
	server_json(server, 200, "", text);
	ask(&whole, "");
	run_until(base, &whole.over);
	server_stream(server, "text/plain", text, 0);
	ask(&streamed, "");
	run_until(base, &streamed.over);
	assert_int_equal(evbuffer_get_length(whole.got), SIZE);
	assert_memory_equal(evbuffer_pullup(whole.got, -1), text, SIZE);
	assert_int_equal(evbuffer_get_length(streamed.got), SIZE);
	assert_memory_equal(evbuffer_pullup(streamed.got, -1), text, SIZE);
	assert_true(whole.most <= STEP && whole.datas >= SIZE / STEP);
	assert_true(streamed.most <= STEP && streamed.datas >= SIZE / STEP);
	free(text);
	asked_done(&whole);
	asked_done(&streamed);
}

/* An answer beyond its limit is refused before it is held. */
static void test_too_large(void **state)
{
	struct asked asked = {0};

	(void)state;
	server_json(server, 200, "", "0123456789012345678901234567890123456789");
	ask_url(&asked, server->url, "", HANGS_MS, HANGS_MS, 39);
	run_until(base, &asked.over);
	assert_int_equal(asked.error.kind, RLMD_ERROR_BAD_REPLY);
	assert_non_null(strstr(asked.error.text, "larger than 39 bytes"));
	asked_done(&asked);
}

/* Freeing a transfer closes its connection: the server sees it and can stop working. */
static void test_cancel(void **state)
{
	struct asked asked = {0};

	(void)state;
	server_answer(server, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", SERVER_HOLD, 0);
	ask(&asked, "");
	run_until_count(base, &asked.datas, 1);
	ask_free(&asked);
	run_until_count(base, &server->left, 1);
	assert_false(asked.over);
	asked_done(&asked);
}

/* The owner may free the transfer in any callback; none follows. */
static void test_free_in_callbacks(void **state)
{
	struct asked in_status = {.free_in_status = true}, in_data = {.free_in_data = true};
	struct asked last = {0};

	(void)state;
	server_json(server, 200, "", "{}");
	ask(&in_status, "");
	ask(&in_data, "");
	run_until_count(base, &in_data.datas, 1);
	ask(&last, "");
	run_until(base, &last.over);
	assert_int_equal(in_status.status, 200);
	assert_int_equal(in_status.datas, 0);
	assert_false(in_status.over || in_data.over);
	asked_done(&in_status);
	asked_done(&in_data);
	asked_done(&last);
}

/* Cancelled after any number of events, a transfer leaves nothing behind (C2, C4). */
static void test_cancel_sweep(void **state)
{
	bool complete = false;

	(void)state;
	server_sse(server, "data: one\n\n", 7);
	for (int n = 0; !complete; n++) {
		struct asked asked = {0};

		ask(&asked, "x");
		for (int i = 0; i < n && !asked.over; i++)
			event_base_loop(base, EVLOOP_ONCE);
		complete = asked.over;
		asked_done(&asked);
	}
}

/* Three hundred in flight at once, over more than one multi handle; each gets its own answer. */
static void test_many(void **state)
{
	enum { MANY = 300 };
	static struct asked asked[MANY];
	size_t finished = 0;

	(void)state;
	memset(asked, 0, sizeof asked);
	server_answer(server, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf", SERVER_HOLD, 0);
	for (int i = 0; i < MANY; i++) {
		asked[i].finished = &finished;
		ask(&asked[i], "x");
	}
	run_until_count(base, &server->holding, MANY);
	for (int i = 0; i < MANY / 2; i++)
		ask_free(&asked[i]);
	run_until_count(base, &server->left, MANY / 2);
	server_json(server, 200, "", "{}");
	for (int i = 0; i < MANY / 2; i++) {
		evbuffer_free(asked[i].got);
		asked[i] = (struct asked){.finished = &finished};
		ask(&asked[i], "x");
	}
	run_until_count(base, &finished, MANY / 2);
	for (int i = 0; i < MANY / 2; i++)
		assert_got(&asked[i], "{}");
	for (int i = 0; i < MANY; i++)
		asked_done(&asked[i]);
}

/* A large body reaches the server whole, also one that is made while it is sent. */
static void test_large_body(void **state)
{
	enum { SIZE = 3 << 20 };
	char *body = xcalloc(SIZE + 1, 1);
	struct asked plain = {0}, quoted = {.quoted = true};

	(void)state;
	memset(body, 'b', SIZE);
	server_json(server, 200, "", "{}");
	ask(&plain, body);
	run_until(base, &plain.over);
	assert_false(plain.failed);
	assert_string_equal(strstr(server->last, "\r\n\r\n") + 4, body);
	ask(&quoted, body);
	run_until(base, &quoted.over);
	assert_false(quoted.failed);
	assert_string_equal(strstr(server->last, "Content-Length: "),
			    strstr(server->last, "Content-Length: 3145730\r\n"));
	assert_memory_equal(strstr(server->last, "\r\n\r\n") + 4, "\"bbb", 4);
	assert_int_equal(strlen(strstr(server->last, "\r\n\r\n") + 4), SIZE + 2);
	assert_memory_equal(strstr(server->last, "\"bbb") + 1, body, SIZE);
	free(body);
	asked_done(&plain);
	asked_done(&quoted);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_post),
		TEST(test_told_in_one_turn),
		TEST(test_stream_split_at_every_byte),
		TEST(test_empty),
		TEST(test_no_redirect),
		TEST(test_keep_alive),
		TEST(test_keep_alive_of_a_burst),
		TEST(test_nothing_is_sent_twice),
		TEST(test_closed_while_idle),
		TEST(test_unasked_answer),
		TEST(test_no_http),
		TEST(test_no_descriptor),
		TEST(test_no_descriptor_for_a_file),
		TEST(test_refused),
		TEST(test_connected_ahead),
		TEST(test_connecting_meanwhile),
		TEST(test_protocols),
		TEST(test_cut),
		TEST(test_idle_and_deadline),
		TEST(test_small_steps),
		TEST(test_too_large),
		TEST(test_cancel),
		TEST(test_free_in_callbacks),
		TEST(test_cancel_sweep),
		TEST(test_many),
		TEST(test_large_body),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
