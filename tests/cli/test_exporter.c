/* cli/exporter: what is answered by HTTP, to whom, and how many at once. */
#include "cli/exporter.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/loop.h"

enum { AT_ONCE = 8, HUNG_MS = 20000 };

struct fixture {
	struct event_base *base;
	struct exporter *exporter;
	int asked;
};

static void write_text(void *owner, struct evbuffer *out)
{
	struct fixture *fixture = owner;

	buffer_add_printf(out, "text %d\n", ++fixture->asked);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);

	fixture->base = loop_new();
	fixture->exporter = exporter_new(fixture->base, ":0", write_text, fixture, NULL);
	*state = fixture;
	return !fixture->exporter;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	exporter_free(fixture->exporter);
	event_base_free(fixture->base);
	free(fixture);
	return 0;
}

static int visit(struct fixture *fixture)
{
	const char *port = strrchr(exporter_url(fixture->exporter), ':') + 1;
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)strtol(port, NULL, 10)),
				      .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static void turn(struct fixture *fixture, int64_t ms)
{
	struct timeval time = clock_timeval(ms);

	event_base_loopexit(fixture->base, &time);
	event_base_dispatch(fixture->base);
}

/* All that comes until the end; "" where `ms` are over before. */
static void listen_to(struct fixture *fixture, int fd, int64_t ms, char *out, size_t size)
{
	int64_t end = clock_ms() + ms;
	size_t at = 0;
	ssize_t got;

	do {
		turn(fixture, 5);
		while ((got = read(fd, out + at, size - 1 - at)) > 0)
			at += (size_t)got;
	} while (got && clock_ms() < end);
	out[got ? 0 : at] = '\0';
}

static void assert_answered(struct fixture *fixture, const char *request, const char *status,
			    const char *end)
{
	int fd = visit(fixture);
	char told[2048];

	assert_int_equal(write(fd, request, strlen(request)), (ssize_t)strlen(request));
	listen_to(fixture, fd, HUNG_MS, told, sizeof told);
	close(fd);
	assert_int_equal(strncmp(told, "HTTP/1.", 7), 0);
	assert_memory_equal(told + 9, status, strlen(status));
	assert_true(strlen(told) >= strlen(end));
	assert_string_equal(told + strlen(told) - strlen(end), end);
}

static void test_answers(void **state)
{
	struct fixture *fixture = *state;

	assert_answered(fixture, "GET /metrics HTTP/1.1\r\n\r\n", "200 OK", "\r\n\r\ntext 1\n");
	assert_answered(fixture, "HEAD /metrics?a HTTP/1.1\r\n\r\n", "200 OK", "\r\n\r\n");
	assert_answered(fixture, "GET /healthz HTTP/1.0\r\n\r\n", "200 OK", "\r\n\r\nok\n");
	assert_answered(fixture, "GET /metrics/ HTTP/1.1\r\n\r\n", "404 ", "404 Not Found\n");
	assert_answered(fixture, "DELETE /metrics HTTP/1.1\r\n\r\n", "405 ", "Allowed\n");
	assert_answered(fixture, "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n", "413 ", "\n");
	assert_answered(fixture, "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", "421 ",
			"421 Misdirected Request\n");
	assert_answered(fixture, "GET /metrics HTTP/1.1\r\nHost: [::1]\r\nhost: x\r\n\r\n", "400 ",
			"400 Bad Request\n");
	assert_int_equal(fixture->asked, 2);
}

static void test_so_many_at_once(void **state)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\n\r\n";
	struct fixture *fixture = *state;
	int idle[AT_ONCE], last;
	char told[2048];

	for (int i = 0; i < AT_ONCE; i++)
		idle[i] = visit(fixture);
	last = visit(fixture);
	assert_int_equal(write(last, request, strlen(request)), (ssize_t)strlen(request));
	listen_to(fixture, last, 200, told, sizeof told);
	assert_string_equal(told, "");
	assert_int_equal(fixture->asked, 0);
	close(idle[0]);
	listen_to(fixture, last, HUNG_MS, told, sizeof told);
	assert_non_null(strstr(told, "\r\n\r\ntext 1\n"));
	close(last);
	for (int i = 1; i < AT_ONCE; i++)
		close(idle[i]);
	assert_answered(fixture, request, "200", "text 2\n");
}

static void test_an_end_with_connections(void **state)
{
	int fd = visit(*state);

	turn(*state, 20);
	close(fd);
}

static void test_hosts(void **state)
{
	static const char *const own[] = {"127.0.0.1:9464", "[::1]:9464", "10.1.2.3", "localhost",
					  "LocalHost:1",    " me ",       "ME:80"};
	static const char *const foreign[] = {"",
					      "evil.example",
					      "127.0.0.1.evil.example",
					      "localhost.evil.example:80",
					      "x@127.0.0.1",
					      "127.0.0.1:80:80",
					      "me.evil.example",
					      "[me",
					      "[me]:80",
					      "[127.0.0.1]"};

	(void)state;
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		assert_true(exporter_is_own_host(text_of(own[i]), "me"));
	for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
		assert_false(exporter_is_own_host(text_of(foreign[i]), "me"));
}

static void test_places(void **state)
{
	static const char *const places[] = {":0", "127.0.0.1:9464", "[::1]:80", "localhost:80"};
	static const char *const files[] = {"x.prom", "a/b:80", "a:", "a:1x", ":123456"};
	struct event_base *base = loop_new();
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		assert_true(exporter_is_endpoint(places[i]));
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		assert_false(exporter_is_endpoint(files[i]));
	assert_null(exporter_new(base, "localhost:80", write_text, NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_null(exporter_new(base, ":65536", write_text, NULL, &err));
	event_base_free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_so_many_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_end_with_connections, set_up, tear_down),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
