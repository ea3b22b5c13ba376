/* Which proxy the environment names for a URL, as libcurl reads it, and what is told of it. */
#include "net/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/trust.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const names[] = {"http_proxy",     "HTTP_PROXY",    "https_proxy",
				    "HTTPS_PROXY",    "all_proxy",     "ALL_PROXY",
				    "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"};

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(names); i++)
		unsetenv(names[i]);
	return 0;
}

static void assert_proxy(const char *url, const char *proxy, long port)
{
	struct route route;

	route_init(&route, url);
	assert_string_equal(route.proxy, proxy);
	assert_int_equal(route.proxy_port, port);
	assert_true(!*proxy || route_is_proxied(&route, port));
	assert_false(route_is_proxied(&route, 9));
}

/* The origin is what a person may read: no user, no password, no path. */
static void origins(void **state)
{
	static const char *const cases[][2] = {
		{"http://user:secret@127.0.0.1:11434/api/chat", "http://127.0.0.1:11434"},
		{"https://api.openai.com/v1?x=1", "https://api.openai.com"},
		{"http://[::1]:8000/", "http://[::1]:8000"},
		{"http://a b/", "the provider"},
	};
	struct route route;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		route_init(&route, cases[i][0]);
		assert_string_equal(route.origin, cases[i][1]);
		assert_false(route_is_proxied(&route, 80));
	}
}

/* In libcurl's order, each variable over those after it. */
static void variables(void **state)
{
	(void)state;
	assert_proxy("http://h/", "", 0);
	setenv("ALL_PROXY", "socks5h://a.example", 1);
	assert_proxy("http://h/", "socks5h://a.example", 1080);
	assert_proxy("https://h/", "socks5h://a.example", 1080);
	setenv("all_proxy", "b.example:3128", 1);
	assert_proxy("http://h/", "http://b.example:3128", 3128);
	setenv("HTTPS_PROXY", "https://c.example", 1);
	assert_proxy("https://h/", "https://c.example", 443);
	assert_proxy("http://h/", "http://b.example:3128", 3128);
	setenv("https_proxy", "http://us%40er:secret@d.example:8080/", 1);
	assert_proxy("https://h/", "http://d.example:8080", 8080);
	setenv("HTTP_PROXY", "http://evil.example", 1);
	assert_proxy("http://h/", "http://b.example:3128", 3128);
	setenv("http_proxy", "", 1);
	assert_proxy("http://h/", "http://b.example:3128", 3128);
	setenv("http_proxy", "e.example", 1);
	assert_proxy("http://h/", "http://e.example", 1080);
}

/* The first that is set is named, and nothing else of the environment. */
static void certificates(void **state)
{
	char told[220];

	(void)state;
	trust_name(told, sizeof told);
	assert_string_equal(told, "the system's");
	setenv("SSL_CERT_FILE", "/a/\033[2J.pem", 1);
	trust_name(told, sizeof told);
	assert_string_equal(told, "SSL_CERT_FILE=/a/\\x1b[2J.pem");
	setenv("CURL_CA_BUNDLE", "/b.pem", 1);
	trust_name(told, sizeof told);
	assert_string_equal(told, "CURL_CA_BUNDLE=/b.pem");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(origins, setup),
		cmocka_unit_test_setup(variables, setup),
		cmocka_unit_test_setup(certificates, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
