#include "llm/opening.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "llm/key.h"
#include "llm/provider.h"

/* "https://host:port", new; NULL where it is no such URL. */
static char *origin_of(const char *url)
{
	char *scheme = NULL, *host = NULL, *port = NULL, *origin = NULL;
	CURLU *parsed = curl_url();

	if (parsed && !curl_url_set(parsed, CURLUPART_URL, url, 0) &&
	    !curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) &&
	    !curl_url_get(parsed, CURLUPART_HOST, &host, 0) &&
	    !curl_url_get(parsed, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) &&
	    (!strcmp(scheme, "http") || !strcmp(scheme, "https")))
		origin = xasprintf("%s://%s:%s", scheme, host, port);
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(parsed);
	return origin;
}

static const char *environment_url(const struct adapter *adapter)
{
	for (const char *const *name = adapter->base_url_env; name && *name; name++) {
		const char *value = getenv(*name);

		if (value && *value)
			return value;
	}
	return NULL;
}

/* A base URL as the adapter wants it, without a slash at its end; new. */
static char *normal_base(const struct adapter *adapter, const char *given, struct rlmd_error *err)
{
	char *base = adapter->base_url ? adapter->base_url(given, err) : xstrdup(given);
	auto_free char *origin = NULL;

	if (!base) {
		error_context(err, "base URL '%s'", given);
		return NULL;
	}
	for (size_t size = strlen(base); size && base[size - 1] == '/';)
		base[--size] = '\0';
	origin = origin_of(base);
	if (origin)
		return base;
	error_set(err, RLMD_ERROR_USAGE, "the base URL '%s' is no http or https URL", given);
	free(base);
	return NULL;
}

/* What was given, else what the environment says, else the vendor's own; new. */
static char *base_of(const struct rlmd_provider *provider, struct rlmd_error *err)
{
	const struct adapter *adapter = provider->adapter;
	const char *given = provider->base_url ? provider->base_url : environment_url(adapter);

	return normal_base(adapter, given ? given : adapter->default_base_url, err);
}

static bool same_origin(const struct adapter *adapter, const char *base, const char *other)
{
	auto_free char *normal = other ? normal_base(adapter, other, NULL) : NULL;
	auto_free char *left = origin_of(base);
	auto_free char *right = normal ? origin_of(normal) : NULL;

	return left && right && !strcasecmp(left, right);
}

bool opening_at_home(const struct rlmd_provider *provider)
{
	auto_free char *base = base_of(provider, NULL);

	return base && same_origin(provider->adapter, base, provider->adapter->default_base_url);
}

/* One that somebody gave goes to the address that they gave. */
static bool may_have_key(const struct rlmd_provider *provider, const char *base)
{
	const struct adapter *adapter = provider->adapter;

	return !provider->given_by_environment ||
	       same_origin(adapter, base, adapter->default_base_url) ||
	       same_origin(adapter, base, environment_url(adapter));
}

static bool choose_key(struct rlmd_provider *provider, const char *base, struct rlmd_error *err)
{
	const struct adapter *adapter = provider->adapter;

	if (provider->key_file) {
		provider->key = key_read_file(provider->key_file, err);
		return provider->key;
	}
	if (provider->given_key && may_have_key(provider, base)) {
		provider->key = xstrdup(provider->given_key);
		return key_check(provider->key,
				 provider->given_by_environment ? "the environment" : "the options",
				 err);
	}
	if (adapter->key_required && same_origin(adapter, base, adapter->default_base_url))
		return error_set(
			err, RLMD_ERROR_AUTH,
			"no key for %s; set %s, or give --key-file FILE with --provider %s",
			provider->name, adapter->key_env[0], adapter->name);
	return true;
}

static void make_headers(struct rlmd_provider *provider)
{
	const struct adapter *adapter = provider->adapter;
	size_t count = 0;

	while (adapter->headers && adapter->headers[count])
		count++;
	provider->headers = xcalloc(count + 3, sizeof *provider->headers);
	for (size_t i = 0; i < count; i++)
		provider->headers[i] = xstrdup(adapter->headers[i]);
	provider->headers[count++] = xstrdup("Content-Type: application/json");
	if (provider->key && adapter->key_header) {
		const char *place = strstr(adapter->key_header, "%s");

		provider->headers[count] = xasprintf("%.*s%s%s", (int)(place - adapter->key_header),
						     adapter->key_header, provider->key, place + 2);
	}
}

/* Loopback, the addresses of private networks (RFC 1918), and names that only those know. */
static bool is_near(const char *base)
{
	static const char *const places[] = {"127.", "10.", "192.168.", "[::1]", "[f"};
	const char *host = strstr(base, "://") + strlen("://");
	size_t size = strcspn(host, host[0] == '[' ? "]" : ":/");
	int second = 0;

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (!strncmp(host, places[i], strlen(places[i])))
			return true;
	if (sscanf(host, "172.%d.", &second) == 1)
		return second >= 16 && second <= 31;
	return !memchr(host, '.', size) || (size > 6 && !strncasecmp(host + size - 6, ".local", 6));
}

bool opening_find(struct rlmd_provider *provider, struct rlmd_error *err)
{
	auto_free char *base = base_of(provider, err);

	if (!base)
		return false;
	if (!choose_key(provider, base, err)) {
		opening_forget(provider);
		return false;
	}
	provider->near = is_near(base);
	provider->url = xasprintf("%s%s", base, provider->adapter->path);
	make_headers(provider);
	return true;
}

void opening_forget(struct rlmd_provider *provider)
{
	for (char **header = provider->headers; header && *header; header++)
		key_free(*header);
	free(take_pointer(&provider->headers));
	key_free(take_pointer(&provider->key));
	free(take_pointer(&provider->url));
}
