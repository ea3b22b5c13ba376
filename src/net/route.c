#include "net/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "net/curl_check.h"

enum { PROXY_PORT = 1080, PROXY_TLS_PORT = 443 }; /* libcurl's defaults */

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* Scheme, host and port of `url` into `out`; its scheme, and its port or 0. */
static bool read_url(const char *url, char *out, char scheme_out[static 16], long *ret_port)
{
	char *scheme = NULL, *host = NULL, *port = NULL;
	CURLU *parsed = xpresent(curl_url());
	bool ok = !curl_check_url(curl_url_set(parsed, CURLUPART_URL, url,
					       CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME)) &&
		  !curl_check_url(curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0)) &&
		  !curl_check_url(curl_url_get(parsed, CURLUPART_HOST, &host, 0));

	if (ok) {
		curl_check_url(curl_url_get(parsed, CURLUPART_PORT, &port, 0));
		snprintf(out, ROUTE_NAME_SIZE, "%s://%s%s%s", scheme, host, port ? ":" : "",
			 port ? port : "");
		snprintf(scheme_out, 16, "%s", scheme);
		*ret_port = port ? strtol(port, NULL, 10) : 0;
	}
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(parsed);
	return ok;
}

/* In libcurl's order. HTTP_PROXY in capitals is not read: a web server's CGI programs are told
 * headers of requests in such variables. */
static const char *find_proxy(const char *scheme, const char **ret_variable)
{
	static const char *const plain[] = {"http_proxy", "all_proxy", "ALL_PROXY", NULL};
	static const char *const tls[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
					  NULL};

	for (const char *const *name = strcmp(scheme, "https") ? plain : tls; *name; name++)
		if (environment(*name)) {
			*ret_variable = *name;
			return environment(*name);
		}
	return NULL;
}

void route_init(struct route *route, const char *url)
{
	char scheme[16] = "", proxy_scheme[16];
	const char *proxy;

	*route = (struct route){.origin = "the provider"};
	if (!read_url(url, route->origin, scheme, &route->port))
		return;
	if (!route->port)
		route->port = strcmp(scheme, "https") ? 80 : 443;
	proxy = find_proxy(scheme, &route->variable);
	if (!proxy)
		return;
	if (!read_url(proxy, route->proxy, proxy_scheme, &route->proxy_port))
		snprintf(route->proxy, sizeof route->proxy, "of %s", route->variable);
	else if (!route->proxy_port)
		route->proxy_port = strcmp(proxy_scheme, "https") ? PROXY_PORT : PROXY_TLS_PORT;
}

bool route_is_proxied(const struct route *route, long port)
{
	return *route->proxy && port == route->proxy_port;
}

char *route_origin(const char *url)
{
	char *scheme = NULL, *host = NULL, *port = NULL, *origin = NULL;
	CURLU *parsed = xpresent(curl_url());

	if (!curl_check_url(curl_url_set(parsed, CURLUPART_URL, url, 0)) &&
	    !curl_check_url(curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0)) &&
	    !curl_check_url(curl_url_get(parsed, CURLUPART_HOST, &host, 0)) &&
	    !curl_check_url(curl_url_get(parsed, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT)) &&
	    (!strcmp(scheme, "http") || !strcmp(scheme, "https")))
		origin = xasprintf("%s://%s:%s", scheme, host, port);
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(parsed);
	return origin;
}
