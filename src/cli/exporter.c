#include "cli/exporter.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <event2/util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/timer.h"

enum {
	CONNECTIONS_MAX = 8,
	REQUEST_MAX = 8192, /* bytes of its line and headers */
	PATIENCE_MS = 10000,
	LOOK_MS = 50,
	BACKLOG = 16,
};

#define TEXT "text/plain; charset=utf-8"

struct exporter {
	exporter_fn *write;
	void *owner;
	struct evhttp *http;             /* owned */
	struct evconnlistener *listener; /* lent: the server's */
	struct timer *look;              /* owned: pending while there are connections */
	TAILQ_HEAD(, connection) connections;
	int count; /* of them */
	char *url; /* owned */
};

struct connection {
	TAILQ_ENTRY(connection) next;
	struct bufferevent *stream; /* a reference beside the server's */
	int64_t deadline;           /* on clock_ms(): its time is over, whatever it does */
};

/* --- connections ------------------------------------------------------------------------ */

/* evhttp limits neither how many connections there are nor how long one takes in all. It takes its
 * callbacks from a stream that it is done with, which tells that the connection has ended. */
static bool has_ended(const struct connection *connection)
{
	bufferevent_event_cb on_event;

	bufferevent_getcb(connection->stream, NULL, NULL, &on_event, NULL);
	return !on_event;
}

static void forget(struct exporter *exporter, struct connection *connection)
{
	TAILQ_REMOVE(&exporter->connections, connection, next);
	bufferevent_decref(connection->stream);
	free(connection);
	exporter->count--;
}

static void on_look(void *owner)
{
	struct connection *connection, *next;
	struct exporter *exporter = owner;
	int64_t now = clock_ms();

	for (connection = TAILQ_FIRST(&exporter->connections); connection; connection = next) {
		next = TAILQ_NEXT(connection, next);
		if (has_ended(connection))
			forget(exporter, connection);
		else if (now >= connection->deadline) /* the server reads its end */
			shutdown(bufferevent_getfd(connection->stream), SHUT_RDWR);
	}
	if (exporter->count < CONNECTIONS_MAX)
		evconnlistener_enable(exporter->listener);
	if (exporter->count)
		timer_start(exporter->look, LOOK_MS);
}

/* A connection comes: the server asks for the stream to use. */
static struct bufferevent *on_connection(struct event_base *base, void *owner)
{
	struct connection *connection = xcalloc(1, sizeof *connection);
	struct exporter *exporter = owner;

	connection->stream = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	connection->deadline = clock_ms() + PATIENCE_MS;
	bufferevent_incref(connection->stream);
	TAILQ_INSERT_TAIL(&exporter->connections, connection, next);
	if (++exporter->count == CONNECTIONS_MAX)
		evconnlistener_disable(exporter->listener);
	timer_start(exporter->look, LOOK_MS);
	return connection->stream;
}

/* --- requests --------------------------------------------------------------------------- */

/* evhttp would send a body after HEAD as well. */
static void answer(struct evhttp_request *request, int status, const char *reason, const char *type,
		   struct evbuffer *body)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	bool head = evhttp_request_get_command(request) == EVHTTP_REQ_HEAD;
	char size[32];

	snprintf(size, sizeof size, "%zu", evbuffer_get_length(body));
	evhttp_add_header(headers, "Content-Type", type);
	evhttp_add_header(headers, "Content-Length", size);
	evhttp_add_header(headers, "Cache-Control", "no-store");
	evhttp_add_header(headers, "Connection", "close");
	evhttp_send_reply(request, status, reason, head ? NULL : body);
}

static void refuse(struct evhttp_request *request, int status, const char *reason)
{
	auto_evbuffer struct evbuffer *body = buffer_new();

	buffer_add_printf(body, "%d %s\n", status, reason);
	answer(request, status, reason, TEXT, body);
}

static struct rlmd_text without_port(struct rlmd_text value)
{
	size_t size = value.size;

	while (size && isdigit((unsigned char)value.bytes[size - 1]))
		size--;
	if (size && value.bytes[size - 1] == ':')
		value.size = size - 1;
	return value;
}

static bool is_address(int family, struct rlmd_text host)
{
	auto_free char *name = text_copy(host);
	unsigned char address[sizeof(struct in6_addr)];

	return strlen(name) == host.size && inet_pton(family, name, address) == 1;
}

bool exporter_is_own_host(struct rlmd_text value, const char *own)
{
	struct rlmd_text host = without_port(text_trim(value));

	/* Only an address of IPv6 stands in brackets. */
	if (host.size > 1 && host.bytes[0] == '[' && host.bytes[host.size - 1] == ']')
		return is_address(AF_INET6, text_slice(host, 1, host.size - 1));
	return is_address(AF_INET, host) || is_address(AF_INET6, host) ||
	       text_equal_caseless(host, "localhost") || text_equal_caseless(host, own);
}

/* A browser always sends a Host header, so that a request without one is good. */
static bool check_host(struct evhttp_request *request)
{
	const struct evkeyvalq *headers = evhttp_request_get_input_headers(request);
	struct utsname machine = {0};
	const struct evkeyval *header;
	bool seen = false;

	uname(&machine);
	TAILQ_FOREACH (header, headers, next) {
		if (!text_equal_caseless(text_of(header->key), "Host"))
			continue;
		if (seen) {
			refuse(request, 400, "Bad Request");
			return false;
		}
		if (!exporter_is_own_host(text_of(header->value), machine.nodename)) {
			refuse(request, 421, "Misdirected Request");
			return false;
		}
		seen = true;
	}
	return true;
}

static void on_request(struct evhttp_request *request, void *owner)
{
	const enum evhttp_cmd_type method = evhttp_request_get_command(request);
	const char *uri = evhttp_request_get_uri(request);
	struct rlmd_text path = text_from(uri, strcspn(uri, "?"));
	auto_evbuffer struct evbuffer *body = buffer_new();
	const struct exporter *exporter = owner;

	if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
		refuse(request, 405, "Method Not Allowed");
	} else if (!check_host(request)) {
		return;
	} else if (text_equal(path, "/metrics")) {
		exporter->write(exporter->owner, body);
		answer(request, 200, "OK", "text/plain; version=0.0.4; charset=utf-8", body);
	} else if (text_equal(path, "/healthz")) {
		buffer_add_printf(body, "ok\n");
		answer(request, 200, "OK", TEXT, body);
	} else {
		refuse(request, 404, "Not Found");
	}
}

/* --- its life ------------------------------------------------------------------------------ */

bool exporter_is_endpoint(const char *word)
{
	const char *colon = strrchr(word, ':'), *port = colon ? colon + 1 : word;

	if (!colon || strchr(word, '/') || !*port || strlen(port) > 5)
		return false;
	while (isdigit((unsigned char)*port))
		port++;
	return !*port;
}

static in_port_t *port_of(struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)address)->sin6_port
					      : &((struct sockaddr_in *)address)->sin_port;
}

/* libevent takes no port 0. */
static bool read_endpoint(const char *endpoint, struct sockaddr_storage *ret, int *ret_size)
{
	const char *colon = strrchr(endpoint, ':');
	size_t size = (size_t)(colon - endpoint);
	long port = strtol(colon + 1, NULL, 10);
	auto_free char *address = size ? xstrndup(endpoint, size) : xstrdup("127.0.0.1");

	if (port > UINT16_MAX ||
	    evutil_parse_sockaddr_port(address, (struct sockaddr *)ret, ret_size))
		return false;
	*port_of(ret) = htons((uint16_t)port);
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
			 ntohs(*port_of(&address)));
}

/* Takes the listener. A method that is none of these gets 501 from evhttp. */
static void serve(struct exporter *exporter, struct event_base *base,
		  struct evconnlistener *listener)
{
	exporter->listener = listener;
	exporter->url = url_of(listener);
	exporter->look = timer_new(base, on_look, exporter);
	exporter->http = evhttp_new(base);
	evhttp_set_max_headers_size(exporter->http, REQUEST_MAX);
	evhttp_set_max_body_size(exporter->http, 0);
	evhttp_set_timeout(exporter->http, PATIENCE_MS / 1000);
	evhttp_set_allowed_methods(exporter->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD |
							   EVHTTP_REQ_POST | EVHTTP_REQ_PUT |
							   EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS |
							   EVHTTP_REQ_PATCH);
	evhttp_set_bevcb(exporter->http, on_connection, exporter);
	evhttp_set_gencb(exporter->http, on_request, exporter);
	evhttp_bind_listener(exporter->http, listener);
}

struct exporter *exporter_new(struct event_base *base, const char *endpoint, exporter_fn *write,
			      void *owner, struct rlmd_error *err)
{
	const unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE;
	struct sockaddr_storage address = {0};
	int size = sizeof address;
	struct evconnlistener *listener;
	struct exporter *exporter;

	if (!read_endpoint(endpoint, &address, &size)) {
		error_set(err, RLMD_ERROR_USAGE,
			  "'%s' is no place for metrics: an address in numbers and a port, as "
			  "127.0.0.1:9464, or :9464 alone",
			  endpoint);
		return NULL;
	}
	listener = evconnlistener_new_bind(base, NULL, NULL, flags, BACKLOG,
					   (struct sockaddr *)&address, size);
	if (!listener) {
		error_errno(err, RLMD_ERROR_USAGE, "metrics cannot be had at %s", endpoint);
		return NULL;
	}
	exporter = xcalloc(1, sizeof *exporter);
	exporter->write = write;
	exporter->owner = owner;
	TAILQ_INIT(&exporter->connections);
	serve(exporter, base, listener);
	return exporter;
}

void exporter_free(struct exporter *exporter)
{
	struct connection *connection;

	if (!exporter)
		return;
	evhttp_free(exporter->http);
	while ((connection = TAILQ_FIRST(&exporter->connections)))
		forget(exporter, connection);
	timer_free(exporter->look);
	free(exporter->url);
	free(exporter);
}

const char *exporter_url(const struct exporter *exporter)
{
	return exporter->url;
}
