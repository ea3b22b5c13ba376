#include "server.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/text.h"

enum { HANGS = 120 }; /* seconds after which nothing is waited for any more */

#define NO_LIST "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

struct answer {
	char *bytes;
	size_t size, piece;
	enum server_then then;
};

struct connection {
	struct server *server;
	struct bufferevent *io;
	struct event *next; /* the next piece is due */
	const struct answer *answer;
	size_t sent;
	TAILQ_ENTRY(connection) entry;
};

struct server_private {
	struct event_base *base;
	struct evconnlistener *listener;
	struct answer answers[32];
	size_t count, used;
	server_respond_fn *respond;
	void *owner; /* lent: respond's */
	TAILQ_HEAD(, connection) connections;
};

static void connection_free(struct connection *connection)
{
	TAILQ_REMOVE(&connection->server->private->connections, connection, entry);
	bufferevent_free(connection->io);
	event_free(connection->next);
	free(connection);
}

static void on_written(struct bufferevent *io, void *arg)
{
	struct connection *connection = arg;

	(void)io;
	connection->server->closed++;
	connection_free(connection);
}

static void on_next(evutil_socket_t fd, short what, void *arg)
{
	struct connection *connection = arg;
	const struct answer *answer = connection->answer;
	size_t left = answer->size - connection->sent;
	size_t size = answer->piece && answer->piece < left ? answer->piece : left;

	(void)fd;
	(void)what;
	bufferevent_write(connection->io, answer->bytes + connection->sent, size);
	connection->sent += size;
	if (connection->sent < answer->size) {
		event_add(connection->next, &(struct timeval){0});
		return;
	}
	if (answer->then == SERVER_CLOSE && !answer->size)
		on_written(connection->io, connection);
	else if (answer->then == SERVER_CLOSE)
		bufferevent_setcb(connection->io, NULL, on_written, NULL, connection);
	else if (answer->then == SERVER_KEEP)
		connection->answer = NULL;
	else
		connection->server->holding++;
}

static void respond(struct connection *connection)
{
	const struct server_private *private = connection->server->private;
	char *body = private->respond(private->owner, connection->server->last);
	bool stream = !strncmp(body, "data:", 5);
	int status = strstr(body, "\"error\":") ? 400 : 200;

	evbuffer_add_printf(bufferevent_get_output(connection->io),
			    "HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n%s",
			    status, stream ? "text/event-stream" : "application/json", strlen(body),
			    body);
	free(body);
}

static void on_read(struct bufferevent *io, void *arg)
{
	struct connection *connection = arg;
	struct server *server = connection->server;
	struct server_private *private = server->private;
	struct evbuffer *in = bufferevent_get_input(io);
	struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	size_t length = 0, size = evbuffer_get_length(in);
	const char *place;
	char *bytes;

	if (end.pos < 0)
		return;
	bytes = xstrndup((char *)evbuffer_pullup(in, end.pos + 4), (size_t)end.pos + 4);
	place = strcasestr(bytes, "\r\nContent-Length: ");
	if (place)
		length = strtoul(place + strlen("\r\nContent-Length: "), NULL, 10);
	free(bytes);
	if (size < (size_t)end.pos + 4 + length)
		return;
	bytes = xstrndup((char *)evbuffer_pullup(in, -1), size);
	evbuffer_drain(in, size);
	if (!server->lists && !strncmp(bytes, "GET ", 4)) {
		free(bytes);
		bufferevent_write(io, NO_LIST, sizeof NO_LIST - 1);
		return;
	}
	free(server->last);
	server->last = bytes;
	server->requests++;
	if (private->respond) {
		respond(connection);
		return;
	}
	connection->answer = &private->answers[private->used];
	connection->sent = 0;
	if (private->used + 1 < private->count)
	private->used++;
	on_next(-1, 0, connection);
}

static void on_event(struct bufferevent *io, short what, void *arg)
{
	struct connection *connection = arg;

	(void)io;
	if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)))
		return;
	if (connection->answer)
		connection->server->left++;
	if (connection->answer && connection->answer->then == SERVER_HOLD &&
	    connection->sent == connection->answer->size)
		connection->server->holding--;
	connection_free(connection);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
		      int size, void *arg)
{
	struct server *server = arg;
	struct connection *connection = xcalloc(1, sizeof *connection);

	(void)listener;
	(void)address;
	(void)size;
	server->connections++;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); /* each piece by itself */
	connection->server = server;
	connection->io = bufferevent_socket_new(server->private->base, fd, BEV_OPT_CLOSE_ON_FREE);
	connection->next = evtimer_new(server->private->base, on_next, connection);
	TAILQ_INSERT_TAIL(&server->private->connections, connection, entry);
	bufferevent_setcb(connection->io, on_read, NULL, on_event, connection);
	bufferevent_enable(connection->io, EV_READ | EV_WRITE);
}

void server_say(struct server *server, const char *raw)
{
	struct connection *each;

	TAILQ_FOREACH (each, &server->private->connections, entry)
		assert_int_equal(send(bufferevent_getfd(each->io), raw, strlen(raw), 0),
				 strlen(raw));
}

struct server *server_new(struct event_base *base)
{
	struct server *server = xcalloc(1, sizeof *server);
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;

	server->private = xcalloc(1, sizeof *server->private);
	server->private->base = base;
	TAILQ_INIT(&server->private->connections);
	server->private->listener = evconnlistener_new_bind(
		base, on_accept, server, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 4096,
		(struct sockaddr *)&address, sizeof address);
	assert_non_null(server->private->listener);
	getsockname(evconnlistener_get_fd(server->private->listener), (struct sockaddr *)&address,
		    &size);
	snprintf(server->url, sizeof server->url, "http://127.0.0.1:%d", ntohs(address.sin_port));
	return server;
}

void server_free(struct server *server)
{
	struct server_private *private = server->private;
	struct connection *connection;

	while ((connection = TAILQ_FIRST(&private->connections)))
		connection_free(connection);
	evconnlistener_free(private->listener);
	for (size_t i = 0; i < private->count; i++)
		free(private->answers[i].bytes);
	free(private);
	free(server->last);
	free(server);
}

void server_answer(struct server *server, const char *raw, enum server_then then, size_t piece)
{
	struct server_private *private = server->private;

	assert_true(private->count < sizeof private->answers / sizeof *private->answers);
	if (private->count && private->used + 1 == private->count &&
	    server->requests >= private->count)
	private->used++;
	private->answers[private->count++] = (struct answer){
		.bytes = xstrdup(raw), .size = strlen(raw), .piece = piece, .then = then};
}

void server_json(struct server *server, int status, const char *headers, const char *body)
{
	char *raw = xasprintf(
		"HTTP/1.1 %d X\r\nContent-Type: application/json\r\n%sContent-Length: "
		"%zu\r\n\r\n%s",
		status, headers, strlen(body), body);

	server_answer(server, raw, SERVER_KEEP, 0);
	free(raw);
}

void server_respond(struct server *server, server_respond_fn *fn, void *owner)
{
	server->private->respond = fn;
	server->private->owner = owner;
}

void server_sse(struct server *server, const char *events, size_t piece)
{
	server_stream(server, "text/event-stream", events, piece);
}

void server_stream(struct server *server, const char *type, const char *bytes, size_t piece)
{
	char *raw = xasprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\n"
			      "Transfer-Encoding: chunked\r\n\r\n%zx\r\n%s\r\n0\r\n\r\n",
			      type, strlen(bytes), bytes);

	server_answer(server, raw, SERVER_KEEP, piece);
	free(raw);
}

static void on_too_long(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	*(bool *)arg = true;
}

static void run_while_waiting(struct event_base *base, const bool *flag, const size_t *count,
			      size_t wanted)
{
	bool too_long = false;
	struct event *limit = evtimer_new(base, on_too_long, &too_long);

	event_add(limit, &(struct timeval){.tv_sec = HANGS});
	while (!too_long && (flag ? !*flag : *count < wanted))
		event_base_loop(base, EVLOOP_ONCE);
	event_free(limit);
	assert_false(too_long);
}

void run_until(struct event_base *base, const bool *flag)
{
	run_while_waiting(base, flag, NULL, 0);
}

void run_until_count(struct event_base *base, const size_t *count, size_t wanted)
{
	run_while_waiting(base, NULL, count, wanted);
}
