#include "cli/exporter.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <event2/util.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/request_line.h"

enum {
	CONNECTIONS_MAX = 8,
	REQUEST_MAX = 8192, /* bytes, with its headers */
	PATIENCE_MS = 10000,
	BACKLOG = 16,
};

struct exporter {
	exporter_fn *write;
	void *owner;
	struct evconnlistener *listener; /* owned */
	TAILQ_HEAD(, visitor) visitors;
	int count; /* of them */
	char *url; /* owned */
};

/* A connection. */
struct visitor {
	TAILQ_ENTRY(visitor) next;
	struct exporter *exporter;
	struct bufferevent *stream; /* owned */
	struct event *late;         /* owned: its time is over, whatever it does */
	bool answered;
};

/* --- connections ------------------------------------------------------------------------ */

static void dismiss(struct visitor *visitor)
{
	struct exporter *exporter = visitor->exporter;

	TAILQ_REMOVE(&exporter->visitors, visitor, next);
	bufferevent_free(visitor->stream);
	event_free(visitor->late);
	free(visitor);
	if (exporter->count-- == CONNECTIONS_MAX)
		evconnlistener_enable(exporter->listener);
}

static void on_late(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	dismiss(owner);
}

static void on_over(struct bufferevent *stream, short what, void *owner)
{
	(void)stream;
	(void)what;
	dismiss(owner);
}

/* All is written. Its end is awaited, within the time: closed with something unread, the kernel
 * would take the answer back. */
static void on_written(struct bufferevent *stream, void *owner)
{
	struct visitor *visitor = owner;

	if (visitor->answered)
		shutdown(bufferevent_getfd(stream), SHUT_WR);
}

/* --- requests --------------------------------------------------------------------------- */

static void answer(struct visitor *visitor, const char *status, const char *type, bool head,
		   struct evbuffer *body)
{
	struct evbuffer *out = bufferevent_get_output(visitor->stream);

	visitor->answered = true;
	evbuffer_add_printf(out,
			    "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
			    "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
			    status, type, evbuffer_get_length(body));
	if (!head)
		evbuffer_add_buffer(out, body);
}

static void refuse(struct visitor *visitor, const char *status)
{
	auto_evbuffer struct evbuffer *body = evbuffer_new();

	evbuffer_add_printf(body, "%s\n", status);
	answer(visitor, status, "text/plain; charset=utf-8", false, body);
}

static void answer_path(struct visitor *visitor, struct rlmd_text path, bool head)
{
	auto_evbuffer struct evbuffer *body = evbuffer_new();

	if (text_equal(path, "/metrics")) {
		visitor->exporter->write(visitor->exporter->owner, body);
		answer(visitor, "200 OK", "text/plain; version=0.0.4; charset=utf-8", head, body);
	} else if (text_equal(path, "/healthz")) {
		evbuffer_add_printf(body, "ok\n");
		answer(visitor, "200 OK", "text/plain; charset=utf-8", head, body);
	} else {
		refuse(visitor, "404 Not Found");
	}
}

/* The headers behind it change nothing. */
static void answer_line(struct visitor *visitor, struct rlmd_text line)
{
	struct request_line request;
	const char *refusal = request_line_read(line, &request);

	if (refusal)
		refuse(visitor, refusal);
	else
		answer_path(visitor, request.path, request.head);
}

/* What comes after the answer is thrown away. */
static void on_bytes(struct bufferevent *stream, void *owner)
{
	struct evbuffer *in = bufferevent_get_input(stream);
	struct visitor *visitor = owner;
	size_t size = evbuffer_get_length(in);
	struct evbuffer_ptr end;
	auto_free char *line = NULL;
	size_t length;

	if (visitor->answered) {
		evbuffer_drain(in, size);
		return;
	}
	end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	if (end.pos < 0 && size < REQUEST_MAX)
		return;
	if (end.pos < 0) {
		refuse(visitor, "431 Request Header Fields Too Large");
	} else {
		line = evbuffer_readln(in, &length, EVBUFFER_EOL_CRLF_STRICT);
		answer_line(visitor, text_from(line, length));
	}
	evbuffer_drain(in, evbuffer_get_length(in));
}

static void on_visit(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
		     int size, void *owner)
{
	struct event_base *base = evconnlistener_get_base(listener);
	const struct timeval patience = clock_timeval(PATIENCE_MS);
	struct visitor *visitor = xcalloc(1, sizeof *visitor);
	struct exporter *exporter = owner;

	(void)address;
	(void)size;
	visitor->exporter = exporter;
	visitor->stream = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	visitor->late = event_new(base, -1, 0, on_late, visitor);
	event_add(visitor->late, &patience);
	bufferevent_setcb(visitor->stream, on_bytes, on_written, on_over, visitor);
	bufferevent_setwatermark(visitor->stream, EV_READ, 0, REQUEST_MAX);
	bufferevent_enable(visitor->stream, EV_READ | EV_WRITE);
	TAILQ_INSERT_TAIL(&exporter->visitors, visitor, next);
	if (++exporter->count == CONNECTIONS_MAX)
		evconnlistener_disable(listener);
}

/* --- its life ------------------------------------------------------------------------------ */

bool exporter_is_place(const char *word)
{
	const char *colon = strrchr(word, ':'), *port = colon ? colon + 1 : word;

	if (!colon || strchr(word, '/') || !*port || strlen(port) > 5)
		return false;
	while (isdigit((unsigned char)*port))
		port++;
	return !*port;
}

static void set_port(struct sockaddr *address, uint16_t port)
{
	if (address->sa_family == AF_INET6)
		((struct sockaddr_in6 *)address)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)address)->sin_port = htons(port);
}

/* libevent takes no port 0. */
static bool read_place(const char *place, struct sockaddr *ret, int *ret_size)
{
	const char *colon = strrchr(place, ':');
	size_t size = (size_t)(colon - place);
	long port = strtol(colon + 1, NULL, 10);
	auto_free char *address = size ? xstrndup(place, size) : xstrdup("127.0.0.1");

	if (port > UINT16_MAX || evutil_parse_sockaddr_port(address, ret, ret_size))
		return false;
	set_port(ret, (uint16_t)port);
	return true;
}

static char *url_of(struct evconnlistener *listener)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof address;
	char name[INET6_ADDRSTRLEN] = "";
	bool six;

	getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&address, &size);
	six = address.ss_family == AF_INET6;
	evutil_inet_ntop(address.ss_family,
			 six ? (void *)&((struct sockaddr_in6 *)&address)->sin6_addr
			     : (void *)&((struct sockaddr_in *)&address)->sin_addr,
			 name, sizeof name);
	return xasprintf(six ? "http://[%s]:%d/metrics" : "http://%s:%d/metrics", name,
			 ntohs(six ? ((struct sockaddr_in6 *)&address)->sin6_port
				   : ((struct sockaddr_in *)&address)->sin_port));
}

struct exporter *exporter_new(struct event_base *base, const char *place, exporter_fn *write,
			      void *owner, struct rlmd_error *err)
{
	const unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE;
	struct sockaddr_storage address = {0};
	int size = sizeof address;
	struct exporter *exporter;

	if (!read_place(place, (struct sockaddr *)&address, &size)) {
		error_set(err, RLMD_ERROR_USAGE,
			  "'%s' is no place for metrics: an address in numbers and a port, as "
			  "127.0.0.1:9464, or :9464 alone",
			  place);
		return NULL;
	}
	exporter = xcalloc(1, sizeof *exporter);
	exporter->write = write;
	exporter->owner = owner;
	TAILQ_INIT(&exporter->visitors);
	exporter->listener = evconnlistener_new_bind(base, on_visit, exporter, flags, BACKLOG,
						     (struct sockaddr *)&address, size);
	if (!exporter->listener) {
		error_errno(err, RLMD_ERROR_USAGE, "metrics cannot be had at %s", place);
		exporter_free(exporter);
		return NULL;
	}
	exporter->url = url_of(exporter->listener);
	return exporter;
}

void exporter_free(struct exporter *exporter)
{
	struct visitor *visitor;

	if (!exporter)
		return;
	while ((visitor = TAILQ_FIRST(&exporter->visitors)))
		dismiss(visitor);
	if (exporter->listener)
		evconnlistener_free(exporter->listener);
	free(exporter->url);
	free(exporter);
}

const char *exporter_url(const struct exporter *exporter)
{
	return exporter->url;
}
