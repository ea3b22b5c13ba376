/* Each way in which libcurl comes back without an answer, in words that say what to do. */
#include "net/http_error.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct route route;
static CURL *easy;

static int setup(void **state)
{
	(void)state;
	route = (struct route){.origin = "http://model.example:8000",
			       .proxy = "http://proxy.example:3128",
			       .variable = "http_proxy",
			       .port = 8000,
			       .proxy_port = 3128};
	easy = curl_easy_init();
	return !easy;
}

static int teardown(void **state)
{
	(void)state;
	curl_easy_cleanup(easy);
	return 0;
}

struct row {
	CURLcode code;
	bool proxied, sent, lost, unclean;
	enum rlmd_error_kind kind;
	bool hopeless;
	const char *said[3]; /* all of it is in the message; NULL: no more */
};

static const struct row rows[] = {
	{CURLE_COULDNT_RESOLVE_HOST, .kind = RLMD_ERROR_NETWORK,
	 .said = {"cannot reach http://model.example:8000", "no such host", "check the base URL"}},
	{CURLE_COULDNT_RESOLVE_PROXY, .kind = RLMD_ERROR_NETWORK,
	 .said = {"cannot reach the proxy http://proxy.example:3128", "no such host",
		  "check http_proxy"}},
	{CURLE_COULDNT_CONNECT, .kind = RLMD_ERROR_NETWORK,
	 .said = {"cannot reach http://model.example:8000", "is the server running?"}},
	{CURLE_COULDNT_CONNECT, .proxied = true, .kind = RLMD_ERROR_NETWORK,
	 .said = {"cannot reach the proxy http://proxy.example:3128", "check http_proxy"}},
	{CURLE_OPERATION_TIMEDOUT, .kind = RLMD_ERROR_NETWORK,
	 .said = {"cannot reach http://model.example:8000", "no connection within 5 s"}},
	{CURLE_OPERATION_TIMEDOUT, .proxied = true, .kind = RLMD_ERROR_NETWORK,
	 .said = {"cannot reach http://model.example:8000 by way of the proxy "
		  "http://proxy.example:3128",
		  "no connection within 5 s"}},
	{CURLE_PEER_FAILED_VERIFICATION, .kind = RLMD_ERROR_NETWORK, .hopeless = true,
	 .said = {"certificate of http://model.example:8000 is not trusted",
		  "\\x1bself-signed certificate", "SSL_CERT_FILE"}},
	{CURLE_SSL_CACERT_BADFILE, .kind = RLMD_ERROR_USAGE, .hopeless = true,
	 .said = {"the certificates to trust", "CURL_CA_BUNDLE=/nowhere.pem", "cannot be read"}},
	{CURLE_SSL_CONNECT_ERROR, .kind = RLMD_ERROR_NETWORK,
	 .said = {"no TLS connection with http://model.example:8000",
		  "\\x1bself-signed certificate", "https and not"}},
	{CURLE_URL_MALFORMAT, .kind = RLMD_ERROR_USAGE,
	 .said = {"http://model.example:8000", "check the base URL"}},
	{CURLE_UNSUPPORTED_PROTOCOL, .proxied = true, .kind = RLMD_ERROR_NETWORK,
	 .said = {"what the proxy http://proxy.example:3128 answered is no HTTP",
		  "check http_proxy"}},
	{CURLE_UNSUPPORTED_PROTOCOL, .sent = true, .kind = RLMD_ERROR_BAD_REPLY,
	 .said = {"what http://model.example:8000 answered is no HTTP"}},
	{CURLE_WEIRD_SERVER_REPLY, .proxied = true, .sent = true, .kind = RLMD_ERROR_BAD_REPLY,
	 .said = {"what http://model.example:8000 answered is no HTTP"}},
	{CURLE_WRITE_ERROR, .sent = true, .kind = RLMD_ERROR_BAD_REPLY,
	 .said = {"the answer of http://model.example:8000 is larger than 1000 bytes"}},
	{CURLE_GOT_NOTHING, .sent = true, .kind = RLMD_ERROR_NETWORK,
	 .said = {"the connection to http://model.example:8000 broke: "}},
	{CURLE_RECV_ERROR, .proxied = true, .sent = true, .kind = RLMD_ERROR_NETWORK,
	 .said = {"the connection to http://model.example:8000 by way of the proxy "
		  "http://proxy.example:3128 broke: "}},
	{CURLE_ABORTED_BY_CALLBACK, .sent = true, .lost = true, .kind = RLMD_ERROR_NETWORK,
	 .said = {"kept from an earlier request, broke before its answer"}},
	{CURLE_ABORTED_BY_CALLBACK, .proxied = true, .sent = true, .lost = true,
	 .kind = RLMD_ERROR_NETWORK,
	 .said = {"the connection to http://model.example:8000 by way of the proxy "
		  "http://proxy.example:3128, kept"}},
	{CURLE_ABORTED_BY_CALLBACK, .unclean = true, .kind = RLMD_ERROR_NETWORK,
	 .said = {"the connection to http://model.example:8000, kept",
		  "that nobody had asked for"}},
};

static void test_each_code(void **state)
{
	(void)state;
	setenv("CURL_CA_BUNDLE", "/nowhere.pem", 1);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct rlmd_error error = {0};
		struct http_error failed = {.easy = easy,
					    .code = rows[i].code,
					    .words = "\x1bself-signed certificate",
					    .route = &route,
					    .proxied = rows[i].proxied,
					    .sent = rows[i].sent,
					    .lost = rows[i].lost,
					    .unclean = rows[i].unclean,
					    .max_size = 1000,
					    .connect_ms = 5000};

		assert_int_equal(http_error_explain(&failed, &error), rows[i].hopeless);
		assert_int_equal(error.kind, rows[i].kind);
		for (size_t j = 0; j < COUNT(rows[i].said) && rows[i].said[j]; j++)
			if (!strstr(error.text, rows[i].said[j]))
				fail_msg("row %zu says \"%s\"", i, error.text);
	}
	unsetenv("CURL_CA_BUNDLE");
}

/* A proxy that answers CONNECT with the number that the wanted host's name begins with. */
static void serve(int listener)
{
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		char head[2048] = "";
		int status = 0;

		if (read(fd, head, sizeof head - 1) > 0 &&
		    sscanf(head, "CONNECT s%d.", &status) == 1)
			dprintf(fd, "HTTP/1.1 %d no\r\nContent-Length: 0\r\n\r\n", status);
		close(fd);
	}
	_exit(0);
}

static pid_t start_proxy(int *ret_port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t pid;

	assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	*ret_port = ntohs(address.sin_port);
	pid = fork();
	if (!pid)
		serve(listener);
	close(listener);
	return pid;
}

static size_t ignore(char *bytes, size_t one, size_t size, void *owner)
{
	(void)bytes, (void)one, (void)owner;
	return size;
}

/* A proxy that refuses the tunnel: what it said decides whose fault it is, and whether it passes.
 */
static void test_tunnel(void **state)
{
	static const struct {
		int status;
		enum rlmd_error_kind kind;
		bool hopeless;
		const char *said;
	} tunnels[] = {
		{407, RLMD_ERROR_AUTH, true, "wants another user name and password"},
		{403, RLMD_ERROR_NETWORK, true, "it answered with status 403"},
		{500, RLMD_ERROR_NETWORK, false, "it answered with status 500"},
	};
	int port;
	pid_t pid = start_proxy(&port);
	char proxy[64], url[64];

	(void)state;
	snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", port);
	curl_easy_setopt(easy, CURLOPT_PROXY, proxy);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
	for (size_t i = 0; i < COUNT(tunnels); i++) {
		struct http_error failed = {
			.easy = easy, .words = "", .route = &route, .proxied = true};
		struct rlmd_error error = {0};

		snprintf(url, sizeof url, "https://s%d.example/", tunnels[i].status);
		curl_easy_setopt(easy, CURLOPT_URL, url);
		failed.code = curl_easy_perform(easy);
		assert_int_not_equal(failed.code, CURLE_OK);
		assert_int_equal(http_error_explain(&failed, &error), tunnels[i].hopeless);
		assert_int_equal(error.kind, tunnels[i].kind);
		assert_non_null(strstr(error.text, tunnels[i].said));
		assert_non_null(strstr(error.text, route.proxy));
		assert_int_equal(error.http_status, tunnels[i].status == 407 ? 407 : 0);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Nothing is listening: the reason is the kernel's own. */
static void test_refused(void **state)
{
	struct http_error failed = {.easy = easy, .words = "", .route = &route};
	struct rlmd_error error = {0};
	int port;
	pid_t pid = start_proxy(&port);
	char url[64];

	(void)state;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	failed.code = curl_easy_perform(easy);
	assert_int_equal(failed.code, CURLE_COULDNT_CONNECT);
	assert_false(http_error_explain(&failed, &error));
	assert_non_null(strstr(error.text, "Connection refused"));
}

/* A tunnel that stood is not what failed, nor one that let the request through. */
static void test_beyond_the_tunnel(void **state)
{
	struct http_error failed = {.easy = easy,
				    .words = "",
				    .route = &route,
				    .proxied = true,
				    .code = CURLE_RECV_ERROR,
				    .sent = true};
	struct rlmd_error error = {0};
	int port;
	pid_t pid = start_proxy(&port);
	char proxy[64];

	(void)state;
	snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", port);
	curl_easy_setopt(easy, CURLOPT_PROXY, proxy);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
	curl_easy_setopt(easy, CURLOPT_URL, "https://s503.example/");
	assert_int_not_equal(curl_easy_perform(easy), CURLE_OK);
	assert_false(http_error_explain(&failed, &error));
	assert_non_null(strstr(error.text, "broke: "));
	curl_easy_setopt(easy, CURLOPT_URL, "https://s200.example/");
	assert_int_not_equal(curl_easy_perform(easy), CURLE_OK);
	failed.sent = false;
	assert_false(http_error_explain(&failed, &error));
	assert_non_null(strstr(error.text, "broke: "));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* libcurl may know of a proxy of which we do not know who named it. */
static void test_nobodys_proxy(void **state)
{
	struct rlmd_error error = {0};

	(void)state;
	route.variable = NULL;
	http_error_at_proxy(&route, &error);
	assert_non_null(strstr(error.text, "the proxy's variable may hold them"));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_code),         TEST(test_tunnel),        TEST(test_refused),
		TEST(test_beyond_the_tunnel), TEST(test_nobodys_proxy),
	};

	return cmocka_run_group_tests_name("http_error", tests, NULL, NULL);
}
